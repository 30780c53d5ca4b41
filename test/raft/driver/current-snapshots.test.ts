/**
 * Requested snapshots, as backups need them: they contain everything that was committed before the request, and nothing
 * that is not committed.
 */
import { describe, expect, it } from 'vitest';
import type { SnapshotMeta } from '../../../raft/types.ts';
import { Cluster } from './cluster.ts';
import type { Node } from './node.ts';
import { COMPACTING, GROUP } from './options.ts';

/** Asks for a snapshot; the answer comes later. */
function ask(node: Node): { reported: (SnapshotMeta | undefined)[] } {
  const answer: { reported: (SnapshotMeta | undefined)[] } = { reported: [] };
  node.raft.currentSnapshot(GROUP, (meta) => answer.reported.push(meta));
  return answer;
}

/** Commits entries until another snapshot is stored; returns their number. */
async function entriesUntilNext(isRead: boolean): Promise<number> {
  const cluster = new Cluster({ voters: 1, options: COMPACTING });
  const leader = await cluster.elect();
  const answer = ask(leader);
  await cluster.settle();
  if (!isRead) leader.raft.releaseSnapshot(GROUP);
  const index = answer.reported[0]?.index;
  let rounds = 0;
  while (leader.disk.get(GROUP)?.snapshot?.index === index && rounds < 300) {
    await cluster.fill(1);
    rounds += 1;
  }
  return rounds;
}

describe('a current snapshot', () => {
  it('holds everything that was committed before it was asked for, and is on disk', async () => {
    const cluster = new Cluster({ voters: 3 });
    const leader = await cluster.elect();
    await cluster.commit('a');
    await cluster.commit('b');
    const { commit } = leader.status;
    const answer = ask(leader);
    await cluster.settle();
    expect(answer.reported.map((meta) => meta?.index)).toEqual([commit]);
    expect(leader.disk.get(GROUP)?.snapshot).toEqual(answer.reported[0]);
  });

  it('is not one that was already being written when it was asked for', async () => {
    const cluster = new Cluster({ voters: 1, options: COMPACTING });
    const leader = await cluster.elect();
    let left = 20;
    leader.app.snapshot = () => {
      left = 20;
      return {
        next: () => ((left -= 1) > 0 ? new Uint8Array(100) : undefined),
        abandon: () => undefined,
      };
    };
    const first = ask(leader);
    const step = (): void => {
      while (leader.hasTurn) leader.turn();
      if (leader.isWriting) leader.sync();
    };
    for (let i = 0; i < 100 && left > 15; i += 1) step();
    leader.propose('a');
    for (let i = 0; i < 100 && !leader.app.commands.includes('a'); i += 1) step();
    const { commit } = leader.status;
    const second = ask(leader);
    expect(first.reported).toEqual([]);
    await cluster.settle();
    expect(first.reported[0]?.index).toBeLessThan(commit);
    expect(second.reported[0]?.index).toBe(commit);
  });

  it('is the stored one while nothing was committed since, and a new one after that', async () => {
    const cluster = new Cluster({ voters: 1 });
    const leader = await cluster.elect();
    const first = ask(leader);
    await cluster.settle();
    const again = ask(leader);
    await cluster.settle();
    expect(again.reported[0]).toBe(first.reported[0]);
    await cluster.commit('a');
    const third = ask(leader);
    await cluster.settle();
    expect(third.reported[0]?.index).toBe(leader.status.commit);
  });

  it('is not answered by a follower', async () => {
    const cluster = new Cluster({ voters: 3 });
    const leader = await cluster.elect();
    for (const node of cluster.up.filter(({ id }) => id !== leader.id)) {
      const answer = ask(node);
      await cluster.settle();
      expect(answer.reported).toEqual([undefined]);
    }
  });

  it('is given to a bounded number of callers at a time, and refused to more', async () => {
    const cluster = new Cluster({ voters: 1 });
    const leader = await cluster.elect();
    const answers = Array.from({ length: 20 }, () => ask(leader));
    await cluster.settle();
    const reported = answers.map(({ reported: [meta] }) => meta?.index);
    expect(reported.filter((index) => index === undefined)).toHaveLength(4);
    expect(reported.filter((index) => index === leader.status.commit)).toHaveLength(16);
  });

  it('is replaced later while a client reads it', async () => {
    const [unread, read] = [await entriesUntilNext(false), await entriesUntilNext(true)];
    expect(read).toBeGreaterThan(2 * unread);
    expect(read).toBeLessThan(300);
  });
});
