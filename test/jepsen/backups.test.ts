import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../cluster/harness.ts';
import { BackupClient } from './backup-client.ts';
import type { Backup, GroupReported } from './backup-history.ts';
import { type BackupsOptions, checkBackups } from './checkers/backups.ts';
import { checkBackupsTaken } from './checkers/backups-taken.ts';
import { checkRestored } from './checkers/restored.ts';
import type { CheckResult } from './checkers/result.ts';
import type { GroupStates, LoggedState } from './group-states.ts';
import { HistoryWriter, readHistory } from './history-file.ts';
import { jointHistory, NOTHING_JOINT } from './joint-history.ts';
import { ADA, change, granted } from './joint-judged.ts';
import { answer } from './judged.ts';
import type { Restoration, RestoredAnswer } from './restored-cluster.ts';
import { spentSubjects } from './spent-subjects.ts';

const MILLI = 1e6;
/** The group of the cluster, and the group of its only partition. */
const META: GroupReported = { group: 0, index: 5, term: 1, timeMillis: 50, stateHash: 'rules-7' };
const USERS: GroupReported = { group: 1, index: 40, term: 2, timeMillis: 90, stateHash: 'state-40' };

/** Begins at 100 ms and ends at 200 ms. */
function backup(more: Partial<Backup> = {}): Backup {
  return {
    op: 'backup',
    node: 1,
    invokeNanos: 100 * MILLI,
    completeNanos: 200 * MILLI,
    status: 200,
    class: 'ok',
    error: null,
    directory: 'backup-1',
    rulesVersion: 7,
    groups: [META, USERS],
    damage: null,
    ...more,
  };
}

function logOf(index: number, state: LoggedState, more: Partial<GroupStates> = {}): GroupStates {
  return { firstIndex: 1, lastIndex: 60, states: new Map([[index, state]]), ...more };
}

const LOGS: ReadonlyMap<number, GroupStates> = new Map([
  [0, logOf(5, { term: 1, timeMillis: 50, stateHash: 'rules-7', rulesVersion: 7 })],
  [1, logOf(40, { term: 2, timeMillis: 90, stateHash: 'state-40', rulesVersion: 7 })],
]);

/** `answer(40)` has index 40 in partition 0 and arrived at 41 ms. Version 7 of the rules was acknowledged at 11 ms. */
function judged(backups: readonly Backup[], more: Partial<BackupsOptions> = {}): CheckResult {
  return checkBackups(backups, {
    history: [answer(40), answer(150)],
    joint: jointHistory([change(6, 2), granted(30, [ADA], { receipt: null })]),
    states: LOGS,
    ...more,
  });
}

describe('the judge of backups', () => {
  it('accepts a backup that equals the state of the logs and holds all acknowledged answers', () => {
    expect(judged([backup()])).toMatchObject({
      status: 'ok',
      counts: { groupsReplayed: 2, acknowledgedCompared: 1 },
    });
  });

  it.each([
    [
      'another state',
      { ...USERS, stateHash: 'other' },
      'backup-1: group 1 at 40 has the hash other, but the log leads to state-40',
    ],
    [
      'an entry of another term',
      { ...USERS, term: 1 },
      'backup-1: group 1 at 40 reports term 1 and 90 ms; in the log that entry has term 2 and 90 ms',
    ],
    ['an index that no log has', { ...USERS, index: 61 }, 'backup-1: group 1 at 61: its log ends at 60'],
  ])('finds %s', (_, group, finding) => {
    expect(judged([backup({ groups: [META, group] })]).findings).toEqual([finding]);
  });

  it('finds a missing grant that was acknowledged before the backup began', () => {
    expect(judged([backup()], { history: [answer(41)] }).findings).toEqual([
      'backup-1 has group 1 at 40, but the answer to ada at 41 was acknowledged before it began',
    ]);
    const joint = jointHistory([granted(20, [ADA], { receipt: { ...RECEIPT, index: 44 } })]);
    expect(judged([backup()], { history: [], joint }).findings).toHaveLength(1);
    const otherGroup = jointHistory([granted(20, [ADA], { receipt: { ...RECEIPT, group: 1 } })]);
    expect(judged([backup()], { joint: otherGroup }).findings).toEqual(['backup-1 lacks group 2']);
  });

  it('compares each backup with the answers that were acknowledged before it', () => {
    const later = backup({ directory: 'backup-2', invokeNanos: 300 * MILLI, completeNanos: 400 * MILLI });
    expect(judged([later, backup()], { history: [answer(40), answer(250)] }).findings).toEqual([
      'backup-2 has group 1 at 40, but the answer to ada at 250 was acknowledged before it began',
    ]);
  });

  it('finds old rules, and a version that group 0 does not have at this index', () => {
    const older = jointHistory([change(7, 2)]);
    expect(judged([backup()], { joint: older }).findings).toEqual([
      'backup-1 has version 7 of the rules, but 8 was acknowledged before it began',
    ]);
    expect(judged([backup({ rulesVersion: 8 })]).findings).toEqual([
      'backup-1: group 0 at 5 reports version 8 of the rules, but the log leads to 7',
    ]);
  });

  it('finds a backup that a restore would refuse', () => {
    expect(judged([backup({ damage: 'group-1.snapshot cannot be read' })]).findings).toEqual([
      'backup-1 is damaged: group-1.snapshot cannot be read',
    ]);
  });

  it('counts the groups whose logs do not begin at the first entry', () => {
    const states = new Map([...LOGS, [1, logOf(40, STATE, { firstIndex: 9, states: new Map() })] as const]);
    expect(judged([backup()], { states })).toMatchObject({ status: 'ok', counts: { groupsNotReplayed: 1 } });
  });
});

describe('the judge of failed backups', () => {
  const failed = backup({ class: 'fail', error: 'it has no leader', rulesVersion: null, groups: [] });
  const band = { kind: 'kill', nodes: [1], startNanos: 10 * MILLI, endNanos: 95 * MILLI };
  const taken = (backups: readonly Backup[], bands = [band]): CheckResult =>
    checkBackupsTaken(backups, { bands, settleMillis: 10 });

  it('accepts a failure during a fault and shortly after it', () => {
    expect(taken([failed, backup()])).toMatchObject({
      status: 'ok',
      counts: { finished: 1, failedUnderFaults: 1 },
    });
    expect(taken([failed, backup()], []).findings).toEqual([
      'backup-1 failed while nothing was broken: it has no leader',
    ]);
  });

  it('is undecided if no backup was finished, and skipped if none was started', () => {
    expect(taken([failed])).toMatchObject({ status: 'unknown', note: 'none was finished' });
    expect(taken([]).status).toBe('skipped');
    expect(judged([]).status).toBe('skipped');
  });
});

const RECEIPT = { group: 0, index: 40, position: 0, term: 2, timeMillis: 90 };
const STATE = { term: 2, timeMillis: 90, stateHash: 'state-40', rulesVersion: 7 };
/** The limit of `answer`: 1 per 100 ms. */
const ADAS = { rule: 'default', key: 'user=ada', windowMillis: 100, limit: 1 };

function decided(at: number, more: Partial<RestoredAnswer> = {}): RestoredAnswer {
  const times = { invokeNanos: at * MILLI, completeNanos: (at + 1) * MILLI, timeMillis: at };
  return { ...times, partition: 0, allowed: true, isRestored: false, ...more };
}

/** The processes start at 1000 ms. Group time is that of the history. */
function judgedAfter(answers: readonly RestoredAnswer[], more: Partial<Restoration> = {}): readonly string[] {
  const subjects = [{ body: { userId: 'ada' }, limits: [ADAS], answers }];
  return checkRestored(
    { directory: 'backup-1', startedNanos: 1_000 * MILLI, error: null, subjects, ...more },
    { history: [answer(40), answer(140, { index: 41 })], joint: NOTHING_JOINT, backups: [backup()] },
  ).findings;
}

function tooMuchUntil(at: number): string {
  return `user=ada under default: 2 of 1 within 100 ms until ${at} ms`;
}

const HELD_BACK = decided(1_050, { allowed: false, isRestored: true });

describe('the judge of a restored cluster', () => {
  it('accepts a cluster that denies for a window, and then grants its limits', () => {
    expect(judgedAfter([HELD_BACK, decided(1_110), decided(1_211)])).toEqual([]);
  });

  it('finds a grant within the first window, in real time and after the last time in the backup', () => {
    expect(judgedAfter([HELD_BACK, decided(1_060, { timeMillis: 5_000 })])).toEqual([
      'user=ada under default was granted something 61 ms after the start, within a window of 100 ms',
    ]);
    expect(judgedAfter([HELD_BACK, decided(3_000, { timeMillis: 189 })])).toEqual([
      "user=ada under default was granted something 99 ms after the backup's time, within a window of 100 ms",
    ]);
  });

  it('finds more grants than a limit in one window, together with those in the backup', () => {
    expect(judgedAfter([HELD_BACK, decided(1_110), decided(1_150)])).toEqual([tooMuchUntil(1_150)]);
    // The backup holds the grant at 40. The one at 140, with index 41, came later. Without a partition, only this is
    // judged.
    const unplaced = { partition: null };
    expect(judgedAfter([HELD_BACK, decided(1_110, { ...unplaced, timeMillis: 139 })])).toEqual([
      tooMuchUntil(139),
    ]);
    expect(judgedAfter([HELD_BACK, decided(1_110, { ...unplaced, timeMillis: 140 })])).toEqual([]);
  });

  it('finds that the cluster grants nothing any more, and that it could not be restored', () => {
    expect(judgedAfter([HELD_BACK])).toEqual([
      'user=ada under default was never granted anything again, with 1 answers',
    ]);
    expect(judgedAfter([], { error: 'no node starts', subjects: [] })).toEqual([
      'backup-1 could not be restored: no node starts',
    ]);
  });

  it('is undecided if no denial reported the restore, and skipped without a restore', () => {
    const seen = { history: [], joint: NOTHING_JOINT, backups: [backup()] };
    const quiet = { directory: 'backup-1', startedNanos: 0, error: null, subjects: [] };
    expect(checkRestored(quiet, seen).status).toBe('unknown');
    expect(checkRestored(undefined, seen).status).toBe('skipped');
  });
});

describe('the subjects of the requests to a restored cluster', () => {
  it('were denied before the backup began, the latest first, and can get a grant soon', () => {
    const single = { rule: 'default/second', allowed: false, limit: 3, windowMillis: 1_000 };
    const history = [
      answer(10, { ...single, user: 'a1' }),
      answer(20, { ...single, user: 'a2' }),
      answer(30, { ...single, user: 'a3' }),
      answer(31, { ...single, user: 'a4', allowed: true }),
      answer(32, { ...single, user: 'a5', rule: 'event/1500ms' }),
      answer(120, { ...single, user: 'a6' }),
    ];
    const named = { rule: 'joint-named/2000ms', key: 'user=j1', windowMillis: 2_000 };
    const net = { rule: 'joint-net/2000ms', key: 'net=n1', windowMillis: 2_000 };
    const denied = { allowed: false } as const;
    const joint = jointHistory([
      granted(40, [named], denied),
      granted(41, [net], denied),
      granted(42, [{ ...named, key: 'user=op1' }], denied),
      granted(43, [named, net], denied),
    ]);
    expect(spentSubjects(history, joint, backup())).toEqual([
      { body: { userId: 'a3', rule: 'default' }, limits: [expect.objectContaining({ limit: 3 })] },
      { body: { userId: 'a2', rule: 'default' }, limits: [expect.objectContaining({ key: 'user=a2' })] },
      { body: { descriptors: { net: 'n1' } }, limits: [{ ...net, limit: 14 }] },
      { body: { userId: 'j1', rule: 'joint-named' }, limits: [{ ...named, limit: 5 }] },
    ]);
  });
});

describe('the client that takes backups', () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'quorate-backups-'));
  });
  afterAll(async () => rm(folder, { recursive: true }));

  it('records a failed backup as failed, and continues', async () => {
    const events: Backup[] = [];
    const client = new BackupClient({
      random: () => 0,
      // A port without a listener.
      targets: () => [{ id: 2, port: 1 }],
      record: (event) => events.push(event),
      folder: join(folder, 'backups'),
      pauseMillisMax: 1,
    });
    client.start();
    await eventually('two backups have failed', () => (events.length >= 2 ? true : undefined));
    await client.stop();
    expect(events[1]).toMatchObject({
      op: 'backup',
      node: 2,
      class: 'fail',
      directory: 'backup-2',
      rulesVersion: null,
      groups: [],
    });
  });

  it('writes events that can be read back unchanged', async () => {
    const path = join(folder, 'history.jsonl');
    const backups = [backup(), backup({ class: 'fail', error: 'busy', rulesVersion: null, groups: [] })];
    const writer = new HistoryWriter(path);
    for (const event of backups) writer.append(event);
    writer.close();
    expect((await readHistory(path)).backups).toEqual(backups);
  });
});
