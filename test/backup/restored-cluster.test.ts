/**
 * Tests that a restored cluster has the state of the backup, and that no user is granted too much in any real
 * window, for any grants after the backup.
 */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Rule } from '../../src/api/rule.ts';
import { checkBackup } from '../../src/backup/check-backup.ts';
import type { Manifest } from '../../src/backup/manifest.ts';
import { restoreCluster } from '../../src/backup/restore-cluster.ts';
import { writeKnownMembers } from '../../src/node/member-cache.ts';
import { takeBackup } from '../../src/backup/take-backup.ts';
import { atNode } from '../../src/cli/asked-cluster.ts';
import { clusterSource } from '../../src/cli/cluster-source.ts';
import { examine } from '../../src/cli/doctor-command.ts';
import { showStatus } from '../../src/cli/status-command.ts';
import { askForGrant, showUser } from '../../src/cli/users-command.ts';
import { eventually, temporaryDirectory, testConfig } from '../cluster/harness.ts';
import { InProcessCluster } from '../cluster/in-process.ts';
import { findOverGrant, type ObservedGrant } from '../cluster/over-grant.ts';

const PARTITIONS = 3;
const LIMIT = 4;
const WINDOW_MILLIS = 2_500;
const USERS = Array.from({ length: 12 }, (_, i) => `known-${i}`);
const STRANGERS = Array.from({ length: 12 }, (_, i) => `unknown-${i}`);

const RULES: readonly Rule[] = [
  { id: 'default', limit: LIMIT, windowMillis: WINDOW_MILLIS, clock: 'cluster' },
  { id: 'long', limit: LIMIT, windowMillis: 3_600_000, clock: 'cluster' },
];

/** The grants by user, in both clusters. */
type Granted = Map<string, ObservedGrant[]>;

/** The state hashes by node, then partition. */
function hashesOf(cluster: InProcessCluster): string[][] {
  return cluster.running.map((id) => {
    const { partitions } = cluster.node(id).core;
    return Array.from({ length: PARTITIONS }, (_, p) => partitions.get(p)?.stateHash() ?? '');
  });
}

/** Expects that new users are denied as well, and that reports and metrics show the restore. */
async function showsRestore(cluster: InProcessCluster): Promise<void> {
  const url = `http://127.0.0.1:${cluster.config.nodes[1]?.http.port}`;
  const body = JSON.stringify({ userId: 'new', rule: 'long' });
  const headers = { 'content-type': 'application/json' };
  await eventually('a denial says that the cluster was restored', async () => {
    const response = await fetch(new URL('/v1/allow', url), { method: 'POST', body, headers });
    if (response.status !== 429) return undefined;
    expect(Number(response.headers.get('quorate-restored'))).toBeGreaterThan(3_000);
    expect(await response.json()).toMatchObject({
      reason: 'restored',
      restoredMillis: expect.any(Number) as number,
    });
    return true;
  });
  const said: string[] = [];
  const options = { node: url, print: (line: string) => void said.push(line) };
  expect(await askForGrant({ userId: 'new', rule: 'long' }, options)).toBe('denied');
  await showUser('new', 'long', options);
  expect(said[0]).toMatch(/^denied: 0 of 4 left, .*, as the cluster was restored; again in \d+ ms$/);
  expect(said.at(-1)).toMatch(/^long: the cluster was restored, and denies all requests for \d+ ms more$/);
  await eventually('status, the report and the metrics show it', async () => {
    const lines: string[] = [];
    const state = await showStatus({ cluster: atNode(url), print: (line) => void lines.push(line) });
    expect(state).toBe('degraded');
    const metrics = await (await fetch(new URL('/metrics', url))).text();
    const seconds = Number(/^quorate_restored_seconds (\S+)/m.exec(metrics)?.[1]);
    return seconds > 3_000 && lines.some((line) => /: restored, so requests are denied/.test(line))
      ? true
      : undefined;
  });
  await eventually('doctor reports it as a warning, because it ends by itself', async () => {
    const lines: string[] = [];
    await examine({ node: url, version: 'unknown', print: (line) => void lines.push(line) });
    expect(lines.filter((line) => line.startsWith('FAIL') && line.includes('restored'))).toEqual([]);
    const warned =
      /^WARN {2}cluster: partition .*: restored, so requests are denied for one window .* -> wait; the longest ends in \d+ s$/;
    return lines.some((line) => warned.test(line)) ? true : undefined;
  });
}

/** A request of a user under the long rule, repeated while no partition can decide. */
async function decided(cluster: InProcessCluster, userId: string): Promise<boolean> {
  return eventually('a decision', async () => {
    const answer = await cluster.allow(1, { userId, ruleId: 'long', requestId: `of ${userId}` });
    return answer.kind === 'decision' ? answer.decision.allowed : undefined;
  });
}

describe('a cluster that is backed up and lost', () => {
  let directory = '';
  let old: InProcessCluster;
  let whole: Manifest;
  const granted: Granted = new Map();
  const open: InProcessCluster[] = [];

  async function ask(cluster: InProcessCluster, userId: string, ruleId = 'default'): Promise<boolean> {
    const invokeMillis = performance.now();
    const answer = await cluster.allow(1, { userId, ruleId });
    const isGranted = answer.kind === 'decision' && answer.decision.allowed;
    const completeMillis = performance.now();
    if (isGranted && ruleId === 'default')
      granted.set(userId, [...(granted.get(userId) ?? []), { invokeMillis, completeMillis }]);
    return isGranted;
  }

  const backUp = async (name: string): Promise<Manifest> =>
    takeBackup({
      directory: join(directory, name),
      source: clusterSource(`http://127.0.0.1:${old.config.nodes[1]?.http.port}`, undefined),
      print: () => undefined,
    });

  async function restored(name: string, isComplete: boolean): Promise<InProcessCluster> {
    const config = await testConfig({ rules: RULES, partitions: 1 });
    const data = join(directory, `${name}-restored-${isComplete}`);
    const backup = await checkBackup(join(directory, name));
    const { config: made, groups } = await restoreCluster({
      backup,
      data,
      config,
      isComplete,
      withoutTokens: false,
      filled: writeKnownMembers,
    });
    expect(made.partitions).toBe(PARTITIONS);
    expect(made.clusterId).not.toBe(old.config.clusterId);
    expect(groups.map(({ stateHash }) => stateHash)).toEqual(
      backup.manifest.groups.map(({ stateHash }) => stateHash),
    );
    const cluster = InProcessCluster.of(made, data);
    open.push(cluster);
    await cluster.startAll();
    return cluster;
  }

  beforeAll(async () => {
    directory = await temporaryDirectory();
    old = await InProcessCluster.create({ rules: RULES, partitions: PARTITIONS });
    open.push(old);
    await old.startAll();
    let isAsking = true;
    const load = (async () => {
      for (let i = 0; isAsking; i += 1)
        await ask(old, USERS[i % USERS.length]!, i % 3 === 0 ? 'long' : 'default');
    })();
    await delay(300);
    await backUp('loaded');
    isAsking = false;
    await load;
    await eventually('nothing is left', async () => {
      const answer = await old.allow(1, { userId: 'spent', ruleId: 'long' });
      return answer.kind === 'decision' && !answer.decision.allowed ? true : undefined;
    });
    whole = await backUp('whole');
  });
  afterAll(async () => {
    for (const cluster of open) await cluster.stop();
    await rm(directory, { recursive: true, force: true });
  });

  it('contains the state hash that every replica has', async () => {
    const reported = whole.groups.slice(1).map(({ stateHash }) => stateHash);
    await eventually('all replicas have applied the same', () =>
      hashesOf(old).every((hashes) => hashes.join() === reported.join()) ? true : undefined,
    );
    expect(whole.rulesVersion).toBe(1);
  });

  it('is never overwritten, and is refused in a directory with other files', async () => {
    await expect(backUp('whole')).rejects.toMatchObject({ what: 'foreign' });
    await expect(
      takeBackup({
        directory: old.directory,
        source: clusterSource('http://127.0.0.1:1', 1),
        print: () => {},
      }),
    ).rejects.toMatchObject({ what: 'foreign' });
  });

  it('grants no user a cost again that was granted before the restore', async () => {
    // Grants that are not in the backup under load.
    for (const userId of [...USERS, ...STRANGERS]) for (let i = 0; i < LIMIT; i += 1) await ask(old, userId);
    await old.stop();
    const lostAt = performance.now();
    const cluster = await restored('loaded', false);
    await showsRestore(cluster);
    const users = [...USERS, ...STRANGERS];
    const first = new Map<string, number>();
    await eventually('every user has a grant again', async () => {
      for (const userId of users) {
        expect(await ask(cluster, userId, 'long')).toBe(false);
        if ((await ask(cluster, userId)) && !first.has(userId)) first.set(userId, performance.now());
      }
      await delay(20);
      return first.size === users.length ? true : undefined;
    });
    for (const at of first.values()) expect(at - lostAt).toBeGreaterThanOrEqual(WINDOW_MILLIS);
    for (const [userId, grants] of granted)
      expect([userId, findOverGrant(grants, LIMIT, WINDOW_MILLIS)]).toEqual([userId, undefined]);
    expect(granted.size).toBeGreaterThanOrEqual(users.length);
    // All replicas agree, although each began from its own copy.
    await eventually('all replicas agree', () => {
      const [one = [], ...others] = hashesOf(cluster).map((hashes) => hashes.join());
      return others.every((hashes) => hashes === one) ? true : undefined;
    });
    await cluster.stop();
  });

  it('continues with the same state, if no entry is missing', async () => {
    const cluster = await restored('whole', true);
    expect(cluster.node(1).core.partitions.get(0)?.restoredMillis).toBe(0);
    expect(hashesOf(cluster)[0]).toEqual(whole.groups.slice(1).map(({ stateHash }) => stateHash));
    expect(await decided(cluster, 'spent')).toBe(false);
    expect(await decided(cluster, 'somebody')).toBe(true);
  });
});
