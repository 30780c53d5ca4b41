/** Tests that a node with an older copy of its data directory is detected by its peers and stops. */
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

  /** The term in which this node leads; 0 if it does not. */
  function termLedBy(id: number): number {
    const { role, term = 0 } = cluster.node(id).core.raft.status(1) ?? {};
    return role === 'leader' ? term : 0;
  }

  /**
   * The node that ended, and its error. Undefined if another node became leader that did not know what the victim had
   * acknowledged.
   */
  async function putBack(): Promise<InProcessCluster['fatalErrors'][number] | undefined> {
    const leader = await eventually('there is a leader', () =>
      cluster.running.find((id) => termLedBy(id) > 0),
    );
    const term = termLedBy(leader);
    const victim = (leader % 3) + 1;
    const directory = nodeDirectory(cluster.directory, victim);
    const grant = async (): Promise<void> => {
      const answer = await cluster.decided(leader, { userId: 'ada' });
      expect(answer).toMatchObject({ kind: 'decision', decision: { allowed: true } });
    };

    await grant();
    await cluster.stopNode(victim);
    await rm(`${directory}.old`, { recursive: true, force: true });
    await cp(directory, `${directory}.old`, { recursive: true });
    await cluster.startNode(victim);
    await grant();
    // The leader must have received the victim's acknowledgement: only then does it know what the victim promised.
    const isReported = await eventually('the victim acknowledged everything', () => {
      if (termLedBy(leader) !== term) return false;
      const { match, lastIndex } = cluster.node(leader).core.raft.status(1) ?? {};
      return match?.get(victim) === lastIndex ? true : undefined;
    });
    if (!isReported) return undefined;
    await cluster.stopNode(victim);
    await rm(directory, { recursive: true });
    await cp(`${directory}.old`, directory, { recursive: true });

    await cluster.startNode(victim);
    await eventually('the victim stops, or another leads', () =>
      cluster.fatalErrors.length > 0 || termLedBy(leader) !== term ? true : undefined,
    );
    return cluster.fatalErrors[0];
  }

  it('stops at the first message of a leader, and refuses that directory from then on', async () => {
    cluster = await InProcessCluster.create({ rules: [RULE], partitions: 1 });
    await cluster.startAll();
    const { node: victim, error } = await eventually('a message of a leader reaches the victim', putBack);
    expect(error).toMatchObject({ code: 'ROLLED_BACK' });
    await cluster.stopNode(victim);
    await expect(cluster.startNode(victim)).rejects.toMatchObject({ code: 'STORAGE_DAMAGED' });
    const [other = 0] = cluster.running;
    expect(await cluster.decided(other, { userId: 'ada' })).toMatchObject({ decision: { allowed: true } });
  });
});
