/**
 * Tests recovery of databases with every kind of history: own snapshots with older log entries, the snapshot of a
 * backup, an installed snapshot, none at all, and a group that has moved away. All groups are recovered or none,
 * also if the command is killed between any two of its writes and repeated.
 */
import { cpSync } from 'node:fs';
import { readdir, rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { recoverGroups, type SurvivingStore } from '../../src/backup/recover-groups.ts';
import { settleRecord } from '../../src/backup/recovered-record.ts';
import { contentsReader } from '../../src/backup/group-contents.ts';
import { decodeCommand, encodeRules } from '../../src/limiter/log/command.ts';
import { LimiterStateMachine } from '../../src/limiter/state-machine.ts';
import { encodeMeta } from '../../src/meta/meta-form.ts';
import { applyMetaCommand } from '../../src/meta/meta-state.ts';
import { loadHash32 } from '../../src/partition/hash.ts';
import type { GroupWrite } from '../../raft/driver/store.ts';
import type { Entry, HardState, StoredGroup } from '../../raft/types.ts';
import type { KeyValueDatabase } from '../../storage/database.ts';
import { openStore } from '../../storage/open-store.ts';
import { temporaryDirectory } from '../cluster/harness.ts';
import { entryOf, snapshotOf, START, tableOf } from '../limiter/harness.ts';
import { FIRST_RULES } from '../meta/first-rules.ts';
import { createStore, IDENTITY, storedSnapshot, written } from '../storage/fixtures.ts';

const [META, OWN, BACKED_UP, INSTALLED, PLAIN, MOVED_AWAY] = [0, 1, 2, 3, 4, 5];
const GROUPS = [META, OWN, BACKED_UP, INSTALLED, PLAIN];
const LAST = 20;
const SNAPSHOT = 12;
/** The number of the batch that takes effect: one comes from the open, and one from each group before it. */
const SWITCH = 1 + GROUPS.length;
/** Entries that are kept behind a snapshot for followers that lag. */
const KEPT = 4;

const commandAt = (index: number): Uint8Array =>
  index === 1
    ? encodeRules(tableOf(1, [{ id: 'default', limit: 9, clock: 'cluster' }]))
    : entryOf([{ userId: `user-${index % 3}` }]);
const entryAt = (index: number, data = commandAt(index)): Entry => {
  return { index, term: 1, timeMillis: START + index, kind: 'command', data };
};
const range = (from: number, to: number): number[] =>
  Array.from({ length: to - from + 1 }, (_, i) => from + i);

/** The state of a partition at an index. */
function machineAt(index: number): LimiterStateMachine {
  const machine = new LimiterStateMachine();
  for (const i of range(1, index)) machine.apply(decodeCommand(commandAt(i)), entryAt(i));
  return machine;
}

const hardState = (commit: number): HardState => ({ term: 1, vote: 0, commit });

/** The whole log, then a snapshot within it, then the log from a few entries before the snapshot. */
function snapshotting(
  group: number,
  at: { readonly index: number; readonly compactTo: number },
  chunks: readonly Uint8Array[],
  entries: readonly Entry[],
): GroupWrite[] {
  const { term, timeMillis } = entryAt(at.index);
  const meta = {
    index: at.index,
    term,
    timeMillis,
    voters: [1, 2, 3],
    chunkCount: chunks.length,
    byteLength: chunks.reduce((sum, { length }) => sum + length, 0),
  };
  const base = entryAt(at.compactTo);
  return [
    { group, entries, hardState: hardState(LAST) },
    { group, entries: [], stage: { index: at.index, first: 0, chunks }, snapshot: meta },
    ...(at.compactTo > 0 ? [{ group, entries: [], compactTo: base }] : []),
  ];
}

async function metaWrites(): Promise<GroupWrite[]> {
  const create = {
    type: 'create',
    rules: FIRST_RULES,
    nodes: [1, 2, 3].map((id) => ({ id, incarnation: `${id}`.repeat(32) })),
    replicas: 3,
    partitions: 4,
    clusterVersion: 1,
  } as const;
  const draining = { type: 'drain', change: { node: 3, isDraining: true } } as const;
  const hash = await loadHash32();
  const { record } = applyMetaCommand(undefined, create, hash);
  const entries = range(1, LAST).map((i) => entryAt(i, encodeMeta(i === 1 ? create : draining)));
  return snapshotting(
    META,
    { index: SNAPSHOT, compactTo: SNAPSHOT - KEPT },
    [encodeMeta(record ?? null)],
    entries,
  );
}

/** The snapshot of a partition at an index. */
const at = (index: number): Uint8Array[] => snapshotOf(machineAt(index));

async function historyIn(directory: string): Promise<void> {
  const store = await createStore(directory);
  const log = range(1, LAST).map((i) => entryAt(i));
  const installed = at(SNAPSHOT);
  const { term, timeMillis } = entryAt(SNAPSHOT);
  const byteLength = installed.reduce((sum, { length }) => sum + length, 0);
  const meta = {
    index: SNAPSHOT,
    term,
    timeMillis,
    voters: [1, 2, 3],
    chunkCount: installed.length,
    byteLength,
  };
  const writes: GroupWrite[] = [
    ...(await metaWrites()),
    ...snapshotting(OWN, { index: SNAPSHOT, compactTo: SNAPSHOT - KEPT }, at(SNAPSHOT), log),
    ...snapshotting(BACKED_UP, { index: LAST, compactTo: 0 }, at(LAST), log),
    {
      group: INSTALLED,
      stage: { index: SNAPSHOT, first: 0, chunks: installed },
      install: meta,
      entries: log.slice(SNAPSHOT),
      hardState: hardState(LAST),
    },
    { group: PLAIN, entries: log, hardState: hardState(LAST) },
    { group: MOVED_AWAY, placement: 1, entries: log, hardState: hardState(LAST) },
    {
      group: MOVED_AWAY,
      placement: 2,
      remove: true,
      entries: [],
      hardState: { term: 2, vote: 0, commit: 0 },
    },
  ];
  for (const write of writes) await written(store, [write]);
  await store.close();
}

interface Opening {
  /** Called before and after the batch of this number, from 0. */
  readonly around?: (when: 'before' | 'after', batch: number) => void;
  /** The batch that fails; if it is kept, it is on the disk all the same. */
  readonly fails?: { readonly batch: number; readonly fate: 'lost' | 'kept' };
}

async function opened<T>(
  directory: string,
  work: (store: SurvivingStore) => Promise<T>,
  { around, fails }: Opening = {},
): Promise<T> {
  let batches = 0;
  const wrapDatabase = (database: KeyValueDatabase): KeyValueDatabase => ({
    get: async (key) => database.get(key),
    scan: async (range_, visit) => database.scan(range_, visit),
    compact: async (range_) => database.compact(range_),
    close: async () => database.close(),
    syncedBatch(operations, done) {
      const number = batches;
      batches += 1;
      const failure = fails?.batch === number ? new Error('the disk is gone') : undefined;
      around?.('before', number);
      if (failure !== undefined && fails?.fate === 'lost') return setImmediate(done, failure);
      return database.syncedBatch(operations, (error) => {
        around?.('after', number);
        done(failure ?? error);
      });
    },
  });
  const { nodeId, facts } = IDENTITY;
  const store = await openStore(directory, { nodeId, facts }, { wrapDatabase });
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

const recovering =
  (directory: string, groups: readonly number[] | 'all' = 'all') =>
  async (store: SurvivingStore) =>
    recoverGroups({ store, directory, node: 1, founders: [1, 2, 3], groups, at: 'noon' });

/** The contents of the database for every group. */
async function contentsOf(store: SurvivingStore): Promise<(StoredGroup | undefined)[]> {
  const contents = [];
  for (const group of [...GROUPS, MOVED_AWAY]) contents.push(await store.load(group));
  return contents;
}

async function hashOf(store: SurvivingStore, group: number): Promise<string> {
  const reader = contentsReader(group);
  for (const chunk of (await storedSnapshot(store, group))?.chunks ?? []) reader.add(chunk);
  return reader.complete().stateHash;
}

/** The result for the node that starts: the recovered groups, and those in the record. */
async function seenAtStart(directory: string): Promise<{ recovered: number[]; named: number[] }> {
  return opened(directory, async (store) => {
    const recovered: number[] = [];
    for (const group of GROUPS) if (store.termOf(group) > 1_000_000) recovered.push(group);
    const lines = await settleRecord(directory, (group) => store.termOf(group));
    const named = lines.map((line) => (JSON.parse(line) as { group: number }).group);
    return { recovered, named };
  });
}

describe('a recovery of stores with snapshots', () => {
  let root = '';
  let names = 0;
  const fresh = (): string => join(root, `${(names += 1)}`);
  async function survivor(): Promise<string> {
    const directory = fresh();
    await historyIn(directory);
    return directory;
  }

  beforeAll(async () => {
    root = await temporaryDirectory();
  });
  afterAll(async () => rm(root, { recursive: true, force: true }));

  it('applies each entry once: entries before the snapshot are in it already', async () => {
    const directory = await survivor();
    const reported = await opened(directory, recovering(directory));
    expect(reported.map(({ group, lastIndex, index }) => [group, lastIndex, index])).toEqual(
      GROUPS.map((group) => [group, LAST, LAST + 1]),
    );
    await opened(directory, async (store) => {
      const hashes = [];
      for (const group of GROUPS.slice(1)) hashes.push(await hashOf(store, group));
      // Four histories with the same state.
      expect(new Set(hashes).size).toBe(1);
      const { snapshot, entries } = (await store.load(OWN))!;
      expect(snapshot).toMatchObject({ index: LAST + 1, voters: [1] });
      expect(entries).toEqual([]);
      expect(store.groups()).toContain(MOVED_AWAY);
    });
    expect(await seenAtStart(directory)).toEqual({ recovered: GROUPS, named: GROUPS });
  });

  it('can be repeated like any other', async () => {
    const directory = await survivor();
    await opened(directory, recovering(directory, [OWN]));
    expect((await seenAtStart(directory)).recovered).toEqual([OWN]);
    await opened(directory, recovering(directory));
    expect(await seenAtStart(directory)).toEqual({ recovered: GROUPS, named: [OWN, ...GROUPS] });
  });

  it('changes and records nothing if one of the groups cannot be recovered', async () => {
    const directory = await survivor();
    await opened(directory, async (store) => {
      const unreadable = { ...entryAt(LAST + 1), data: Uint8Array.of(99) };
      await written(store, [{ group: PLAIN, entries: [unreadable] }]);
      const before = await contentsOf(store);
      await expect(recovering(directory)(store)).rejects.toMatchObject({
        what: 'damaged',
        message: expect.stringMatching(/^group 4 cannot be recovered: .*unknown kind 99/) as string,
      });
      expect(await contentsOf(store)).toEqual(before);
    });
    expect(await seenAtStart(directory)).toEqual({ recovered: [], named: [] });
    expect(await readdir(directory)).not.toContain('RECOVERED');
    // Nor can a group be recovered that the node does not hold.
    for (const group of [9, MOVED_AWAY])
      await expect(opened(directory, recovering(directory, [OWN, group]))).rejects.toThrow(
        /holds no replica/,
      );
    expect((await seenAtStart(directory)).recovered).toEqual([]);
  });

  it('that is killed between any two writes has recovered all groups or none, and can be repeated', async () => {
    const directory = await survivor();
    const copies: string[] = [];
    const copy = (when: 'before' | 'after', batch: number): void => {
      if (when === 'after' && batch < SWITCH) return;
      const to = fresh();
      // Like `copyAsAfterCrash`, at this moment.
      cpSync(directory, to, { recursive: true, filter: (path) => basename(path) !== 'LOCK' });
      copies.push(to);
    };
    await opened(directory, recovering(directory), { around: copy });
    const seen: number[] = [];
    for (const killed of copies) {
      const { recovered, named } = await seenAtStart(killed);
      expect(named).toEqual(recovered);
      expect([0, GROUPS.length]).toContain(recovered.length);
      seen.push(recovered.length);
      await opened(killed, recovering(killed));
      expect(await seenAtStart(killed)).toEqual({ recovered: GROUPS, named: [...named, ...GROUPS] });
    }
    // All killed commands except the last ended before the batch that takes effect.
    expect(seen.filter((count) => count > 0)).toHaveLength(1);
  });

  it.each(['lost', 'kept'] as const)('whose last write fails (%s) can be repeated', async (fate) => {
    const directory = await survivor();
    const fails = { batch: SWITCH, fate };
    await expect(opened(directory, recovering(directory), { fails })).rejects.toThrow(/the disk is gone/);
    const expected = fate === 'kept' ? GROUPS : [];
    expect(await seenAtStart(directory)).toEqual({ recovered: expected, named: expected });
    expect(await readdir(directory)).not.toContain('RECOVERING');
    await opened(directory, recovering(directory));
    expect((await seenAtStart(directory)).named).toEqual([...expected, ...GROUPS]);
  });
});
