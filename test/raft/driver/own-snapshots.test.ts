/**
 * Snapshots of a group's own state: taken regularly and in pieces, so that logs stay short and other work does not wait
 * for them.
 */
import { describe, expect, it } from 'vitest';
import { Cluster } from './cluster.ts';
import { COMPACTING, HEARTBEAT_TICKS } from './options.ts';
import { stagedBytes } from './snapshots-under-way.ts';

const compacting = (voters: number, groups = 1): Cluster =>
  new Cluster({ voters, groups, options: COMPACTING });

describe('snapshots of the own state', () => {
  it('compact the log: neither memory nor disk grows with the number of entries', async () => {
    const cluster = compacting(3);
    const leader = await cluster.elect();
    let longest = 0;
    for (let round = 0; round < 40; round += 1) {
      await cluster.fill(10);
      const { lastIndex, logStart } = leader.status;
      longest = Math.max(longest, lastIndex - logStart);
    }
    expect(leader.app.index).toBeGreaterThan(400);
    // The log since the last snapshot, the log kept before it, and the entries that came while it was written.
    expect(longest).toBeLessThan(60);
    await cluster.tick(HEARTBEAT_TICKS);
    for (const node of cluster.nodes.values()) {
      const stored = node.disk.get(1);
      expect(stored?.snapshot?.index).toBeGreaterThan(350);
      expect(stored?.entries.length).toBeLessThan(60);
      expect(stored?.base.index).toBeLessThan(stored?.snapshot?.index ?? 0);
    }
  });

  it('75: are written in pieces, while the group goes on writing entries', async () => {
    const cluster = compacting(1);
    const leader = await cluster.elect();
    await cluster.fill(30);
    const pieces = leader.store.writes.flatMap((writes) =>
      writes.filter((write) => write.stage !== undefined),
    );
    expect(pieces.length).toBeGreaterThan(5);
    for (const writes of leader.store.writes) {
      const bytes = writes.reduce((sum, write) => sum + stagedBytes(write), 0);
      expect(bytes).toBeLessThanOrEqual(200);
    }
  });

  it('of one large group do not delay those of other groups', async () => {
    const cluster = compacting(1, 2);
    const leader = await cluster.elect();
    await cluster.elect(2);
    let left = 200;
    leader.app.snapshot = () => ({
      next: () => ((left -= 1) > 0 ? new Uint8Array(100) : undefined),
      abandon: () => undefined,
    });
    const propose = (group: number): void => {
      leader.propose('x'.repeat(60), group);
      while (leader.hasTurn) leader.turn();
      if (leader.isWriting) leader.sync();
    };
    for (let i = 0; i < 20; i += 1) propose(1);
    for (let i = 0; i < 40; i += 1) propose(2);
    expect(leader.disk.get(2)?.snapshot).toBeDefined();
    expect(left).toBeGreaterThan(50);
  });

  it('are read from the state machine a few bytes a turn, while it goes on applying', async () => {
    const cluster = compacting(1);
    const leader = await cluster.elect();
    const app = leader.app;
    const begin = app.snapshot.bind(app);
    let pulled = 0;
    let appliedMeanwhile = 0;
    app.snapshot = () => {
      const source = begin();
      const { index } = app;
      return {
        next() {
          pulled += 1;
          appliedMeanwhile = Math.max(appliedMeanwhile, app.index - index);
          return source.next();
        },
        abandon: () => source.abandon(),
      };
    };
    for (let i = 0; i < 300 && leader.disk.get(1)?.snapshot === undefined; i += 1) {
      leader.propose(`${i}${'x'.repeat(60)}`);
      const before = pulled;
      while (leader.hasTurn) leader.turn();
      // Chunks of 100 bytes, and 200 bytes to a write.
      expect(pulled - before).toBeLessThanOrEqual(3);
      if (leader.isWriting) leader.sync();
    }
    expect(leader.disk.get(1)?.snapshot).toBeDefined();
    expect(appliedMeanwhile).toBeGreaterThan(1);
  });

  it('a restart continues from the snapshot on disk', async () => {
    const cluster = compacting(3);
    await cluster.fill(60);
    for (const node of cluster.nodes.values()) {
      node.crash();
      node.start();
      expect(node.app.index).toBeGreaterThan(20);
    }
    const next = await cluster.elect();
    await cluster.fill(3);
    await cluster.tick(HEARTBEAT_TICKS);
    expect(cluster.isLevel()).toBe(true);
    expect(next.app.index).toBeGreaterThan(62);
  });

  it.each(['lost', 'kept'] as const)(
    'are replaced only when the next one is complete: a crash while that is written (%s) leaves the old one',
    async (fate) => {
      for (let stop = 1; stop < 25; stop += 1) {
        const cluster = compacting(1);
        const leader = await cluster.elect();
        await cluster.fill(12);
        leader.propose('one more');
        for (let step = 0; step < stop; step += 1) {
          if (leader.isWriting) leader.sync();
          else leader.turn();
        }
        leader.crash(fate);
        leader.start();
        await cluster.elect();
        expect(leader.fatals).toEqual([]);
        await cluster.fill(30);
        expect(leader.app.index).toBeGreaterThan(40);
      }
    },
  );
});
