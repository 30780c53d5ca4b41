/** A failed write or a broken invariant stops the driver: it sends and acknowledges nothing more. */
import { describe, expect, it } from 'vitest';
import { StoreFailedError } from '../../../storage/errors.ts';
import { Cluster } from './cluster.ts';
import { ELECTION_TICKS } from './options.ts';

describe('a failing disk', () => {
  it.each(['lost', 'kept'] as const)(
    '111: is reported as fatal exactly once, and the node sends nothing afterwards (%s)',
    async (fate) => {
      const cluster = new Cluster({ voters: 3, groups: 2 });
      const leader = await cluster.elect();
      const node = cluster.otherThan(leader);
      node.mayEnd = true;
      node.store.memory.failNextWrite(new Error('disk full'), fate);
      leader.propose('a');
      await cluster.settle();
      expect(node.fatals).toHaveLength(1);
      expect(node.fatals[0]).toBeInstanceOf(StoreFailedError);
      cluster.sent.length = 0;
      const { applied } = node.status;
      for (let i = 0; i < 3; i += 1) {
        leader.propose(`more ${i}`);
        await cluster.tick(ELECTION_TICKS);
      }
      expect(cluster.sent.filter(({ from }) => from === node.id)).toEqual([]);
      expect(node.fatals).toHaveLength(1);
      expect(node.isWriting).toBe(false);
      expect(node.status.applied).toBe(applied);
      // The others are a quorum and go on.
      expect(leader.app.applied.length).toBeGreaterThan(3);
    },
  );

  it('111: of a leader acknowledges nothing that was in the failed write', async () => {
    const cluster = new Cluster({ voters: 1 });
    const leader = await cluster.elect();
    const before = leader.app.applied.length;
    leader.mayEnd = true;
    leader.store.memory.failNextWrite(new Error('input/output error'));
    leader.propose('a');
    await cluster.settle();
    expect(leader.fatals).toHaveLength(1);
    expect(leader.app.applied).toHaveLength(before);
  });

  it('a broken invariant stops the node as well', async () => {
    const cluster = new Cluster({ voters: 3 });
    const leader = await cluster.elect();
    leader.mayEnd = true;
    const impossible = { type: 'appendResponse', from: 9, to: 99, term: 1 } as const;
    const message = { ...impossible, rejected: false, index: 1, hintIndex: 0, hintTerm: 0 };
    leader.raft.receive([{ kind: 'message', group: 1, message }]);
    await cluster.settle();
    expect(leader.fatals).toHaveLength(1);
    cluster.sent.length = 0;
    await cluster.tick(ELECTION_TICKS);
    expect(cluster.sent.filter(({ from }) => from === leader.id)).toEqual([]);
  });

  it('an invariant that breaks in a tick, between two turns, stops the node too', async () => {
    const cluster = new Cluster({ voters: 3 });
    const leader = await cluster.elect();
    leader.mayEnd = true;
    const broken = new Error('the clock of the group is broken');
    leader.app.clock.nowMillis = () => {
      throw broken;
    };
    cluster.sent.length = 0;
    await cluster.tick(ELECTION_TICKS);
    expect(leader.fatals).toEqual([broken]);
    expect(cluster.sent.filter(({ from }) => from === leader.id)).toEqual([]);
  });
});
