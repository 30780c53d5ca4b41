/**
 * Tests containers that start from a backup: the old rules are in force, every request is denied at first, and this
 * stays after the backup is gone. A killed container starts over, and founders with different backups found no cluster.
 */
import { execFileSync } from 'node:child_process';
import { cp, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Rule } from '../../src/api/rule.ts';
import { checkBackup } from '../../src/backup/check-backup.ts';
import { backUp } from '../../src/cli/backup-command.ts';
import { eventually, temporaryDirectory, TestCluster } from '../cluster/harness.ts';
import { Pods } from './pods.ts';

const ALL = [0, 1, 2];
const PARTITIONS = 4;
const RULES: readonly Rule[] = [
  { id: 'default', limit: 7, windowMillis: 3_600_000, clock: 'cluster' },
  { id: 'exports', limit: 3, windowMillis: 7_200_000, clock: 'cluster' },
];

let root = '';
/** Two backups of one cluster. */
let [monday, tuesday] = ['', ''];
let pods: Pods;
/** Addresses so far: a container gets another one each time. */
let starts = 1;

beforeAll(async () => {
  root = await temporaryDirectory();
  [monday, tuesday] = [join(root, 'monday'), join(root, 'tuesday')];
  const cluster = await TestCluster.start({ rules: RULES, nodes: 1, partitions: PARTITIONS });
  try {
    const { body } = await cluster.decided(1, { userId: 'ada' });
    if (!body.allowed) throw new Error(`ada is granted nothing: ${JSON.stringify(body)}`);
    const node = `http://127.0.0.1:${cluster.port(1)}`;
    for (const out of [monday, tuesday]) await backUp({ out, node, print: () => undefined });
  } finally {
    await cluster.stop();
  }
});
afterAll(async () => rm(root, { recursive: true }));
beforeEach(async () => {
  pods = await Pods.create();
});
afterEach(() => pods.stopAll());

async function start(ordinal: number, environment: Record<string, string> = {}): Promise<void> {
  starts += 1;
  pods.environment = environment;
  await pods.start(ordinal, `127.0.3.${starts}`);
}

/** Starts a container. @param from a backup, if any */
async function startFrom(ordinal: number, from: string | undefined): Promise<void> {
  await start(ordinal, from === undefined ? {} : { QUORATE_RESTORE_FROM: from });
}

async function says(ordinal: number, text: string): Promise<void> {
  const { said, child } = pods.pod(ordinal);
  await eventually(`pod ${ordinal} says '${text}'`, () => {
    if (said().includes(text)) return true;
    if (child.exitCode !== null) throw new Error(`pod ${ordinal} ended: ${said()}`);
    return undefined;
  });
}

/** Waits until the pod ends. Returns exit code and output. */
async function refusal(ordinal: number): Promise<readonly [number | null, string]> {
  const { child, ended, said } = pods.pod(ordinal);
  await eventually(`pod ${ordinal} ends`, () => {
    // Log lines of a node have its id.
    if (/"node":\d/.test(said())) throw new Error(`pod ${ordinal} runs: ${said()}`);
    return child.exitCode ?? undefined;
  });
  const code = await ended;
  // Prevents other requests to it.
  await pods.stop(ordinal, 'SIGKILL');
  return [code, said()];
}

/** The outcome of a wrong configuration with this message. */
function wrong(text: string): readonly [number, unknown] {
  return [64, expect.stringContaining(text)];
}

/** Denials at each pod, for users that the old cluster knew and did not know. */
async function denyAll(): Promise<void> {
  for (const ordinal of ALL) {
    for (const userId of ['ada', `stranger ${ordinal}`]) {
      const denial = await eventually(`pod ${ordinal} decides`, async () => {
        const { status, body } = await pods.ask(ordinal, '/v1/allow', { userId, rule: 'exports' });
        return status === 503 || status === 0 ? undefined : { status, ...body };
      });
      expect(denial).toMatchObject({ status: 429, reason: 'restored', limit: 3 });
    }
  }
}

describe('three containers with empty volumes and a backup', () => {
  it('run a cluster with its rules that denies all requests first, and keep running without the backup', async () => {
    const copy = join(root, 'copy');
    await cp(monday, copy, { recursive: true });
    for (const ordinal of ALL) await startFrom(ordinal, copy);
    await pods.ready(ALL);
    await denyAll();
    const { body } = await pods.ask(0, '/v1/rules');
    expect(body['rules']).toEqual(RULES);
    const { sha256, manifest } = await checkBackup(monday);
    for (const ordinal of ALL) {
      const record = pods.recordOf(ordinal);
      expect(record).toMatchObject({ isMade: true, founding: { partitions: PARTITIONS, backup: sha256 } });
      expect(record).not.toHaveProperty('backup');
      for (const { group, stateHash } of manifest.groups)
        expect(pods.pod(ordinal).said()).toMatch(
          new RegExp(`group ${group} \\(.*\\): state ${stateHash}, as backed up`),
        );
    }
    await eventually('all pods are known by their names', async () => {
      const { body: cluster } = await pods.ask(1, '/v1/cluster');
      const nodes = cluster['nodes'] as readonly { readonly http?: string; readonly up: boolean }[];
      const names = ALL.map((ordinal) => `${pods.nameOf(ordinal)}:${pods.ports.http}`);
      return nodes.every(({ http, up }, i) => up && http === names[i]) ? true : undefined;
    });
    for (const ordinal of ALL) await pods.stop(ordinal, 'SIGTERM');
    await rm(copy, { recursive: true });
    // One of them still has the variable, though the backup is gone.
    for (const ordinal of ALL) await startFrom(ordinal, ordinal === 0 ? copy : undefined);
    await pods.ready(ALL);
    await denyAll();
    // A pod that joins needs no backup and ignores the variable.
    await startFrom(3, copy);
    await says(3, 'is prepared: add it with');
    // A container that lost its volume reports this, and not the missing backup.
    await pods.stop(1, 'SIGKILL');
    await rm(pods.volumeOf(1), { recursive: true });
    await startFrom(1, copy);
    expect(await refusal(1)).toEqual(
      wrong('has another volume than the one that the cluster was founded with'),
    );
  });

  it('start over if one was killed while it was restored', async () => {
    const copy = join(root, 'held-up');
    await cp(monday, copy, { recursive: true });
    await startFrom(0, copy);
    await says(0, 'waiting for node 2');
    // Reading the third group waits for a writer that never comes.
    const held = join(copy, 'group-2.snapshot');
    await rename(held, `${held}.aside`);
    execFileSync('mkfifo', [held]);
    for (const ordinal of [1, 2]) await startFrom(ordinal, monday);
    await says(0, 'group 1 (partition 0): state');
    await pods.stop(0, 'SIGKILL');
    expect(pods.recordOf(0)).toMatchObject({ founding: { partitions: PARTITIONS } });
    expect(pods.recordOf(0)).not.toHaveProperty('isMade');
    const names = await readdir(pods.volumeOf(0));
    expect(names.filter((name) => name.startsWith('node-'))).toEqual([
      expect.stringMatching(/^node-1\.restoring-/),
    ]);
    await startFrom(0, undefined);
    expect(await refusal(0)).toEqual(
      wrong('QUORATE_RESTORE_FROM must be the backup that the cluster is founded with'),
    );
    await startFrom(0, tuesday);
    expect(await refusal(0)).toEqual(wrong(`that in ${tuesday} has `));
    await rename(`${held}.aside`, held);
    await startFrom(0, copy);
    await pods.ready(ALL);
    expect((await readdir(pods.volumeOf(0))).filter((name) => name.startsWith('node-'))).toEqual(['node-1']);
    await denyAll();
  });
});

describe('founders', () => {
  it.each([
    ['another backup', (): string => tuesday, 'node 3 has one with a manifest of SHA-256 '],
    ['none', (): undefined => undefined, 'node 3 has none'],
  ])('found no cluster with one that has %s', async (_, other, text) => {
    await startFrom(2, other());
    await says(2, 'waiting for node 1');
    await startFrom(0, monday);
    expect(await refusal(0)).toEqual(wrong('QUORATE_RESTORE_FROM must be the same backup in all founders'));
    expect(pods.pod(0).said()).toContain(text);
    expect(pods.recordOf(0)).not.toHaveProperty('founding');
  });

  it('refuse a backup once the cluster was founded without one', async () => {
    const alone = { QUORATE_FOUNDERS: '1' };
    await start(0, alone);
    await pods.ready([0]);
    await pods.stop(0, 'SIGTERM');
    await start(0, { ...alone, QUORATE_RESTORE_FROM: monday });
    expect(await refusal(0)).toEqual(
      wrong('QUORATE_RESTORE_FROM must not be set: the cluster was founded without a backup'),
    );
    await start(0, alone);
    await pods.ready([0]);
  });

  it('accept only a directory that is a backup, and its number of partitions', async () => {
    await startFrom(0, root);
    expect(await refusal(0)).toEqual(wrong('QUORATE_RESTORE_FROM must be the directory of a backup'));
    await start(0, { QUORATE_RESTORE_FROM: monday, QUORATE_PARTITIONS: '5' });
    expect(await refusal(0)).toEqual(
      wrong('QUORATE_PARTITIONS must be 4, as in the backup of QUORATE_RESTORE_FROM'),
    );
  });
});
