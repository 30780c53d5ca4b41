/** Tests which nodes of a directory the cluster script may start, given their last known state of the cluster. */
import { FIRST_RULES } from '../meta/first-rules.ts';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import {
  createCluster,
  LOCAL_DEFAULTS,
  localConfig,
  nodeDirectory,
} from '../../src/config/cluster-directory.ts';
import { localNodes } from '../../src/cli/local-nodes.ts';
import { MemberCache, readKnownMembers } from '../../src/node/member-cache.ts';
import type { MetaState } from '../../src/meta/cluster-state.ts';
import { WAIT_MILLIS_MAX } from '../cluster/harness.ts';

const CONFIG = localConfig({ ...LOCAL_DEFAULTS, nodes: 3 });
let directory: string;
beforeEach(async () => {
  directory = join(await mkdtemp(join(tmpdir(), 'quorate-local-')), 'data');
  await createCluster(directory, CONFIG);
});
afterEach(async () => rm(join(directory, '..'), { recursive: true }));

/** Writes the last known state of node `id`. */
async function knows(id: number, state: Partial<MetaState>, isRemoved = false): Promise<void> {
  const failed: unknown[] = [];
  const cache = new MemberCache(nodeDirectory(directory, id), (error) => failed.push(error));
  const nothing = {
    version: 1,
    settledVersion: 1,
    nodes: [],
    settledNodes: [],
    leaving: [],
    placement: '',
    settledPlacement: '',
    rules: FIRST_RULES,
    clusterVersion: 1,
    retired: [],
  };
  cache.update({ ...nothing, ...state });
  if (isRemoved) cache.removed();
  await expect
    .poll(async () => readKnownMembers(nodeDirectory(directory, id)), { timeout: WAIT_MILLIS_MAX })
    .toMatchObject({ version: state.version ?? 1, isRemoved });
  expect(failed).toEqual([]);
}

const members = (...ids: number[]): { id: number }[] => ids.map((id) => ({ id }));

it('are the founders while no node knows a newer list', async () => {
  const { here, members: all, removed } = await localNodes(directory, CONFIG);
  expect([here, all, [...removed]]).toEqual([[1, 2, 3], [1, 2, 3], []]);
});

it('are those of the newest list, and leaving nodes while they are still needed', async () => {
  await knows(1, {
    version: 3,
    settledVersion: 2,
    nodes: members(1, 4, 5),
    leaving: members(2),
    retired: [3, 2],
  });
  await knows(2, { version: 2, settledVersion: 2, nodes: members(1, 2, 4), retired: [3] });
  const before = await localNodes(directory, CONFIG);
  expect([before.members, [...before.removed]]).toEqual([[1, 4, 5, 2], [3]]);
  await knows(3, { version: 3, settledVersion: 3, nodes: members(1, 4, 5), retired: [3, 2] });
  const after = await localNodes(directory, CONFIG);
  expect([after.members, [...after.removed]]).toEqual([
    [1, 4, 5],
    [3, 2],
  ]);
});

it('are those of the newest list that any of them has stored', async () => {
  await knows(1, { version: 2, nodes: members(1, 2, 4) });
  const cache = new MemberCache(nodeDirectory(directory, 1), (error) => expect(error).toBeUndefined());
  expect((await localNodes(directory, CONFIG)).members).toEqual([1, 2, 4]);
  cache.update({
    version: 3,
    settledVersion: 3,
    nodes: members(1, 2),
    settledNodes: [],
    placement: '',
    settledPlacement: '',
    rules: FIRST_RULES,
    leaving: [],
    retired: [4],
    clusterVersion: 1,
  });
  await expect
    .poll(async () => (await localNodes(directory, CONFIG)).members, { timeout: WAIT_MILLIS_MAX })
    .toEqual([1, 2]);
});

it('are not those that know of their removal, even if they know no newer list', async () => {
  await knows(3, { version: 1, nodes: members(1, 2, 3) }, true);
  const { members: all, removed } = await localNodes(directory, CONFIG);
  expect([all, [...removed]]).toEqual([[1, 2, 3], [3]]);
});

it('are not those whose database is gone; an unreadable list is ignored', async () => {
  await rm(nodeDirectory(directory, 2), { recursive: true });
  await writeFile(join(nodeDirectory(directory, 1), 'members.json'), '{"version":9');
  const { here, members: all } = await localNodes(directory, CONFIG);
  expect([here, all]).toEqual([
    [1, 3],
    [1, 2, 3],
  ]);
});
