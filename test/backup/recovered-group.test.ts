/**
 * Tests recovery after two of three nodes are lost for good: the survivor continues alone, first denies all requests,
 * and new nodes join.
 */
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { recoverGroups } from '../../src/backup/recover-groups.ts';
import { takeBackup } from '../../src/backup/take-backup.ts';
import { clusterSource } from '../../src/cli/cluster-source.ts';
import { nodeDirectory } from '../../src/config/cluster-directory.ts';
import { factsOf } from '../../src/config/cluster-facts.ts';
import { openStore } from '../../storage/open-store.ts';
import { eventually } from '../cluster/harness.ts';
import { InProcessCluster } from '../cluster/in-process.ts';

const PARTITIONS = 3;
const WINDOW_MILLIS = 2_000;

describe('groups that lost their quorum', () => {
  let cluster: InProcessCluster;

  const granted = async (userId: string, ruleId = 'default'): Promise<boolean> => {
    const answer = await cluster.allow(1, { userId, ruleId });
    return answer.kind === 'decision' && answer.decision.allowed;
  };

  beforeAll(async () => {
    cluster = await InProcessCluster.create({
      rules: [
        { id: 'default', limit: 2, windowMillis: WINDOW_MILLIS, clock: 'cluster' },
        { id: 'long', limit: 1, windowMillis: 3_600_000, clock: 'cluster' },
      ],
      partitions: PARTITIONS,
    });
    await cluster.startAll();
  });
  afterAll(async () => cluster.stop());

  it('go on with the survivor, which grants nothing for a window, and then with new nodes', async () => {
    for (let i = 0; i < 20; i += 1) await granted(`user${i}`);
    // Each node takes a snapshot of the groups it leads, and keeps the log before it.
    const source = clusterSource(`http://127.0.0.1:${cluster.config.nodes[0]?.http.port}`, undefined);
    await takeBackup({ directory: join(cluster.directory, 'backup'), source, print: () => undefined });
    for (let i = 0; i < 20; i += 1) await granted(`later${i}`);
    for (const id of [3, 2, 1]) await cluster.stopNode(id);
    const { config, directory } = cluster;
    const store = await openStore(nodeDirectory(directory, 1), { nodeId: 1, facts: factsOf(config) });
    const node1 = nodeDirectory(directory, 1);
    const reported = await recoverGroups({
      store,
      directory: node1,
      node: 1,
      founders: [1, 2, 3],
      groups: 'all',
      at: 'noon',
    });
    expect(reported.map(({ group }) => group)).toEqual([0, 1, 2, 3]);
    for (const { votersBefore, index, lastIndex, term } of reported) {
      expect([votersBefore, index]).toEqual([[1, 2, 3], lastIndex + 1]);
      expect(term).toBeGreaterThan(1_000_000);
    }
    await store.close();
    const startedAt = performance.now();
    await cluster.startNode(1);
    await cluster.ready();
    await eventually('a request is granted', async () => {
      await delay(20);
      return (await granted('stranger')) ? true : undefined;
    });
    // Its group has been running since some time after the start.
    expect(performance.now() - startedAt).toBeGreaterThan(WINDOW_MILLIS);
    expect(await granted('stranger', 'long')).toBe(false);
    const [four, five] = [await cluster.join(4), await cluster.join(5)];
    // The placement settles only when no group waits for a lost node.
    await cluster.accepted({ add: four, remove: 2 });
    await cluster.change({ add: five, remove: 3 });
    await eventually('all partitions have three voters again', () => {
      const { raft } = cluster.node(1).core;
      const voters = [1, 2, 3].map((group) => raft.configOf(group)?.voters.length);
      return voters.every((count) => count === 3) ? true : undefined;
    });
    await eventually('it grants', async () => ((await granted('late')) ? true : undefined));
  });
});
