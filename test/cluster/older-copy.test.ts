/** An operator puts an older copy of a data directory back: the peers know better, and the node must not go on. */
import { cp, rm } from 'node:fs/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { nodeDirectory } from '../../src/config/cluster-directory.ts';
import { eventually } from './harness.ts';
import { InProcessCluster } from './in-process.ts';

const RULE = { id: 'default', limit: 100, windowMillis: 60_000, clock: 'request' } as const;

describe('a node on an older copy of its directory', () => {
  let cluster: InProcessCluster;
  afterEach(async () => {
    await cluster.stop();
  });

  it('stops as soon as a leader speaks to it, and refuses that directory from then on', async () => {
    cluster = await InProcessCluster.create({ rules: [RULE], partitions: 1 });
    await cluster.startAll();
    const leader = await eventually('somebody leads', () => cluster.leaderOf(1, 'ada') || undefined);
    const victim = (leader % 3) + 1;
    const directory = nodeDirectory(cluster.directory, victim);
    const grant = async (): Promise<void> => {
      const answer = await cluster.allow(leader, { userId: 'ada' });
      expect(answer).toMatchObject({ kind: 'decision', decision: { allowed: true } });
    };

    await grant();
    await cluster.stopNode(victim);
    await cp(directory, `${directory}.old`, { recursive: true });
    await cluster.startNode(victim);
    await grant();
    // The leader must have heard that the victim has it: only then was anything promised.
    const { core } = cluster.node(leader);
    await eventually('the victim acknowledged everything', () => {
      const status = core.raft.status(1);
      return status !== undefined && status.match.get(victim) === status.lastIndex ? true : undefined;
    });
    await cluster.stopNode(victim);
    await rm(directory, { recursive: true });
    await cp(`${directory}.old`, directory, { recursive: true });

    await cluster.startNode(victim);
    const { error } = await eventually('the victim stops', () => cluster.fatalErrors[0]);
    expect(error).toMatchObject({ code: 'ROLLED_BACK' });
    await cluster.stopNode(victim);
    await expect(cluster.startNode(victim)).rejects.toMatchObject({ code: 'STORAGE_DAMAGED' });
    await grant();
  });
});
