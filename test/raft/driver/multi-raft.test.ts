/** The driver: one disk write for all groups, group commit, fail-stop, snapshots and their streams. */
import { describe, expect, it } from 'vitest';
import type { StagedChunks } from '../../../raft/driver/store.ts';
import { StoreFailedError } from '../../../storage/errors.ts';
import { Cluster, CLUSTER_OPTIONS, type Member, type Parcel, reads } from './cluster.ts';

const { heartbeatTicks, electionTicks } = CLUSTER_OPTIONS.raft;

/** Proposes one by one, so that each becomes an entry of its own. */
async function fill(cluster: Cluster, leader: Member, group: number, count: number): Promise<void> {
  for (let i = 0; i < count; i += 1) {
    leader.propose(group, `${leader.id}/${group}/${i}/${'x'.repeat(40)}`);
    await cluster.settle();
  }
}

function sizeOf(stage: StagedChunks | undefined): number {
  return (stage?.chunks ?? []).reduce((sum, chunk) => sum + chunk.length, 0);
}

function isAck(message: Parcel['message']): boolean {
  return message.kind === 'message' && message.message.type === 'appendResponse' && !message.message.rejected;
}

/** Is all of the log on disk, the write in flight included? */
function hasAll(member: Member, group: number): boolean {
  const write = member.writes.at(-1)?.find((candidate) => candidate.group === group);
  return write?.entries.at(-1)?.index === member.status(group).lastIndex;
}

function isChunk(parcel: Parcel): boolean {
  return parcel.message.kind === 'chunk';
}

function expectSame(cluster: Cluster, group: number): void {
  const [first] = cluster.up;
  for (const member of cluster.up) {
    const { index, digest } = member.app(group);
    expect({ id: member.id, index, digest }).toEqual({
      id: member.id,
      index: first?.app(group).index,
      digest: first?.app(group).digest,
    });
  }
}

async function farBehind(nodes = 3): Promise<{ cluster: Cluster; leader: Member; late: Member }> {
  const cluster = new Cluster({ nodes });
  const leader = await cluster.electAny(1);
  const late = cluster.members.findLast(({ id }) => id !== leader.id);
  if (late === undefined) throw new Error('a follower');
  cluster.isolate(late.id);
  await fill(cluster, leader, 1, 60);
  expect(leader.status(1).logStart).toBeGreaterThan(late.status(1).lastIndex);
  cluster.sent.length = 0;
  cluster.heal();
  return { cluster, leader, late };
}

async function expectCaughtUp(cluster: Cluster, ticks: number): Promise<void> {
  await cluster.tickAll(ticks);
  expectSame(cluster, 1);
  for (const member of cluster.members) expect(member.fatals).toEqual([]);
}

describe('group commit', () => {
  it('several groups share one write', async () => {
    const cluster = new Cluster({ nodes: 1, groups: 5 });
    const [member] = cluster.members;
    expect(member).toBeDefined();
    if (member === undefined) return;
    for (const group of cluster.groups) await cluster.electAny(group);
    member.writes.length = 0;
    for (const group of cluster.groups) member.propose(group, 'a');
    member.turn();
    expect(member.writes).toHaveLength(1);
    expect(member.writes[0]?.map(({ group, entries }) => [group, entries.length])).toEqual(
      cluster.groups.map((group) => [group, 1]),
    );
    await cluster.settle();
    for (const group of cluster.groups) expect(member.app(group).applied.at(-1)?.kind).toBe('command');
  });

  it('43: what is proposed during a write travels together in the next one', async () => {
    const cluster = new Cluster({ nodes: 1, groups: 2 });
    const [member] = cluster.members;
    expect(member).toBeDefined();
    if (member === undefined) return;
    for (const group of cluster.groups) await cluster.electAny(group);
    member.propose(1, 'first');
    member.turn();
    expect(member.isWriting).toBe(true);
    member.writes.length = 0;
    for (let i = 0; i < 10; i += 1) {
      member.propose(1, `p${i}`);
      member.propose(2, `q${i}`);
      while (member.hasTurn) member.turn();
    }
    expect(member.writes).toHaveLength(0);
    member.sync();
    expect(member.writes).toHaveLength(1);
    const [first] = member.writes;
    expect(first?.map(({ group, entries }) => [group, entries.length])).toEqual([
      [1, 1],
      [2, 1],
    ]);
    const decoded = new TextDecoder().decode(first?.[0]?.entries[0]?.data);
    expect(JSON.parse(decoded)).toHaveLength(10);
  });

  it('messages are taken during a write, and answered by the one after it', async () => {
    const cluster = new Cluster({ nodes: 3 });
    const leader = await cluster.electAny(1);
    const follower = cluster.up.find(({ id }) => id !== leader.id);
    expect(follower).toBeDefined();
    if (follower === undefined) return;
    leader.propose(1, 'a');
    leader.turn();
    for (const parcel of cluster.queue.splice(0)) cluster.deliver(parcel);
    follower.turn();
    expect(follower.isWriting).toBe(true);
    leader.sync();
    leader.propose(1, 'b');
    while (leader.hasTurn) leader.turn();
    for (const parcel of cluster.queue.splice(0)) if (parcel.to === follower.id) cluster.deliver(parcel);
    while (follower.hasTurn) follower.turn();
    expect(follower.status(1).lastIndex).toBe(3);
    expect(cluster.queue.filter(({ from }) => from === follower.id)).toEqual([]);
    follower.sync();
    const acks = cluster.queue.filter(
      ({ from, message }) => from === follower.id && message.kind === 'message',
    );
    expect(acks.map(({ message }) => message.kind === 'message' && message.message)).toMatchObject([
      { type: 'appendResponse', index: 2 },
    ]);
  });

  it('one write holds no more entries than it may: what does not fit goes into the next, and no word of it leaves before', async () => {
    const writeBytesMax = 3_000;
    const cluster = new Cluster({ nodes: 3, groups: 2, driver: { writeBytesMax } });
    const leader = await cluster.electAny(1);
    const late = cluster.members.find(({ id }) => id !== leader.id);
    expect(late).toBeDefined();
    if (late === undefined) return;
    // It sleeps while a few entries of both groups come about, and gets all of them at once.
    const held: Parcel[] = [];
    cluster.fate = (parcel) => {
      if (parcel.to === late.id && parcel.message.kind === 'message') held.push(parcel);
      return parcel.to === late.id ? 0 : 1;
    };
    for (const group of cluster.groups) {
      const from = cluster.leaderOf(group);
      if (from !== undefined && from !== late) await fill(cluster, from, group, 30);
    }
    cluster.heal();
    late.writes.length = 0;
    for (const parcel of held) cluster.deliver(parcel);
    while (late.hasTurn && !late.isWriting) late.turn();
    const acknowledged = (): number =>
      cluster.queue.filter(({ from, message }) => from === late.id && isAck(message)).length;
    let writes = 0;
    for (; late.isWriting; writes += 1) {
      const batch = late.writes.at(-1) ?? [];
      const cost = batch
        .flatMap(({ entries }) => entries)
        .reduce((sum, { data }) => sum + data.length + 512, 0);
      // One entry may go beyond.
      expect(cost).toBeLessThanOrEqual(writeBytesMax + 600);
      const groups = cluster.groups.filter((group) => hasAll(late, group));
      const before = acknowledged();
      late.sync();
      // A group speaks when everything that it had in memory is on its disk.
      expect(groups.length > 0 || acknowledged() === before).toBe(true);
    }
    expect(writes).toBeGreaterThan(3);
    expect(acknowledged()).toBeGreaterThan(0);
    await cluster.tickAll(4 * heartbeatTicks);
    for (const group of cluster.groups) expectSame(cluster, group);
  });

  it('83: a restart applies everything that is known to be committed, without waiting for a tick', async () => {
    const driver = { applyBytesMax: 100, snapshotEveryBytes: 1 << 20 };
    const cluster = new Cluster({ nodes: 1, driver });
    const leader = await cluster.electAny(1);
    await fill(cluster, leader, 1, 50);
    leader.crash();
    leader.start();
    await cluster.settle();
    const { applied, commit } = leader.status(1);
    expect(commit).toBeGreaterThan(40);
    expect(applied).toBe(commit);
  });

  it('one turn applies a bounded amount, all groups together, so that a node that catches up goes on answering', async () => {
    const bytesMax = 1_000;
    const driver = { applyBytesMax: bytesMax, snapshotEveryBytes: 1 << 20 };
    const cluster = new Cluster({ nodes: 1, groups: 2, driver });
    const leader = await cluster.electAny(1);
    for (const group of [1, 2]) await fill(cluster, leader, group, 50);
    leader.crash();
    leader.start();
    const appliedIn = (): number => [1, 2].reduce((sum, group) => sum + leader.status(group).applied, 0);
    let turns = 0;
    for (let before = 0; appliedIn() < 100; turns += 1) {
      leader.turn();
      // An entry has 32 bytes and more; one of each group is always taken.
      expect(appliedIn() - before).toBeLessThanOrEqual(bytesMax / 32 + 2);
      before = appliedIn();
    }
    expect(turns).toBeGreaterThan(2);
  });
});

describe('a failing disk', () => {
  it.each(['lost', 'kept'] as const)(
    '111: is fatal exactly once, and nothing is said afterwards (%s)',
    async (fate) => {
      const cluster = new Cluster({ nodes: 3, groups: 2 });
      const leader = await cluster.electAny(1);
      const member = cluster.up.find(({ id }) => id !== leader.id);
      expect(member).toBeDefined();
      if (member === undefined) return;
      member.store.failNextWrite(new Error('disk full'), fate);
      leader.propose(1, 'a');
      await cluster.settle();
      expect(member.fatals).toHaveLength(1);
      expect(member.fatals[0]).toBeInstanceOf(StoreFailedError);
      cluster.sent.length = 0;
      const { applied } = member.status(1);
      for (let i = 0; i < 3; i += 1) {
        leader.propose(1, `more ${i}`);
        await cluster.tickAll(electionTicks);
      }
      expect(cluster.sent.filter(({ from }) => from === member.id)).toEqual([]);
      expect(member.fatals).toHaveLength(1);
      expect(member.isWriting).toBe(false);
      expect(member.status(1).applied).toBe(applied);
      // The others are a quorum and go on.
      expect(leader.app(1).applied.length).toBeGreaterThan(3);
    },
  );

  it('111: of a leader: nothing that was in the failed write is acknowledged', async () => {
    const cluster = new Cluster({ nodes: 1 });
    const leader = await cluster.electAny(1);
    const before = leader.app(1).applied.length;
    leader.store.failNextWrite(new Error('input/output error'));
    leader.propose(1, 'a');
    await cluster.settle();
    expect(leader.fatals).toHaveLength(1);
    expect(leader.app(1).applied).toHaveLength(before);
  });

  it('a broken invariant stops the node as well', async () => {
    const cluster = new Cluster({ nodes: 3 });
    const leader = await cluster.electAny(1);
    const impossible = { type: 'appendResponse', from: 9, to: 99, term: 1 } as const;
    const message = { ...impossible, rejected: false, index: 1, hintIndex: 0, hintTerm: 0 };
    leader.raft.receive([{ kind: 'message', group: 1, message }]);
    await cluster.settle();
    expect(leader.fatals).toHaveLength(1);
    cluster.sent.length = 0;
    await cluster.tickAll(electionTicks);
    expect(cluster.sent.filter(({ from }) => from === leader.id)).toEqual([]);
  });
});

describe('snapshots of the own state', () => {
  it('are taken, the log is compacted, and neither memory nor disk grows with the number of entries', async () => {
    const cluster = new Cluster({ nodes: 3 });
    const leader = await cluster.electAny(1);
    let longest = 0;
    for (let round = 0; round < 40; round += 1) {
      await fill(cluster, leader, 1, 10);
      const { lastIndex, logStart } = leader.status(1);
      longest = Math.max(longest, lastIndex - logStart);
    }
    expect(leader.app(1).index).toBeGreaterThan(400);
    // What a snapshot allows to gather, what is kept before it, and what came while it was written.
    expect(longest).toBeLessThan(60);
    await cluster.tickAll(heartbeatTicks);
    for (const member of cluster.members) {
      const stored = member.disk.get(1);
      expect(stored?.snapshot?.index).toBeGreaterThan(350);
      expect(stored?.entries.length).toBeLessThan(60);
      expect(stored?.base.index).toBeLessThan(stored?.snapshot?.index ?? 0);
    }
  });

  it('75: are written in pieces, along with everything else', async () => {
    const cluster = new Cluster({ nodes: 1 });
    const leader = await cluster.electAny(1);
    await fill(cluster, leader, 1, 30);
    const pieces = leader.writes.flatMap((writes) => writes.filter((write) => write.stage !== undefined));
    expect(pieces.length).toBeGreaterThan(5);
    for (const writes of leader.writes) {
      const bytes = writes.reduce((sum, write) => sum + sizeOf(write.stage), 0);
      expect(bytes).toBeLessThanOrEqual(200);
    }
  });

  it('of one large group keep those of the others waiting no longer than their turn', async () => {
    const cluster = new Cluster({ nodes: 1, groups: 2 });
    const leader = await cluster.electAny(1);
    await cluster.electAny(2);
    let left = 200;
    leader.app(1).snapshot = () => ({
      next: () => ((left -= 1) > 0 ? new Uint8Array(100) : undefined),
      abandon: () => undefined,
    });
    const propose = (group: number): void => {
      leader.propose(group, 'x'.repeat(60));
      while (leader.hasTurn) leader.turn();
      if (leader.isWriting) leader.sync();
    };
    for (let i = 0; i < 20; i += 1) propose(1);
    for (let i = 0; i < 40; i += 1) propose(2);
    expect(leader.disk.get(2)?.snapshot).toBeDefined();
    expect(left).toBeGreaterThan(50);
  });

  it('are pulled from the state machine a few bytes a turn, while it goes on applying', async () => {
    const cluster = new Cluster({ nodes: 1 });
    const leader = await cluster.electAny(1);
    const app = leader.app(1);
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
      leader.propose(1, `${i}${'x'.repeat(60)}`);
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
    const cluster = new Cluster({ nodes: 3 });
    const leader = await cluster.electAny(1);
    await fill(cluster, leader, 1, 60);
    for (const member of cluster.members) {
      member.crash();
      member.start();
      expect(member.app(1).index).toBeGreaterThan(20);
    }
    const next = await cluster.electAny(1);
    await fill(cluster, next, 1, 3);
    await cluster.tickAll(heartbeatTicks);
    expectSame(cluster, 1);
    expect(next.app(1).index).toBeGreaterThan(62);
  });

  it.each(['lost', 'kept'] as const)(
    'a crash while one is written (%s) leaves the one before it',
    async (fate) => {
      for (let stop = 1; stop < 25; stop += 1) {
        const cluster = new Cluster({ nodes: 1 });
        const leader = await cluster.electAny(1);
        await fill(cluster, leader, 1, 12);
        leader.propose(1, 'one more');
        for (let step = 0; step < stop; step += 1) {
          if (leader.isWriting) leader.sync();
          else leader.turn();
        }
        leader.crash(fate);
        leader.start();
        await cluster.electAny(1);
        expect(leader.fatals).toEqual([]);
        await fill(cluster, leader, 1, 30);
        expect(leader.app(1).index).toBeGreaterThan(40);
      }
    },
  );
});

describe('a follower that is far behind', () => {
  it('gets a snapshot in chunks, one after the other, then appends', async () => {
    const { cluster, leader, late } = await farBehind();
    await expectCaughtUp(cluster, 4 * heartbeatTicks);
    const chunks = cluster.sent.filter(isChunk).map(({ message }) => message);
    const numbers = chunks.map((message) => message.kind === 'chunk' && message.chunk);
    expect(numbers).toEqual(numbers.map((_, i) => i));
    expect(numbers.length).toBeGreaterThan(4);
    await fill(cluster, leader, 1, 3);
    await expectCaughtUp(cluster, heartbeatTicks);
    // It is on disk: a restart needs no snapshot.
    late.crash();
    cluster.sent.length = 0;
    late.start();
    await expectCaughtUp(cluster, 4 * heartbeatTicks);
    expect(cluster.sent.filter(isChunk)).toEqual([]);
  });

  it('also when chunks and their acknowledgements are lost', async () => {
    for (const kind of ['chunk', 'chunkAck'] as const) {
      const { cluster } = await farBehind();
      let count = 0;
      cluster.fate = ({ message }) => {
        if (message.kind !== kind) return 1;
        count += 1;
        return count % 3 === 0 && count < 12 ? 0 : 1;
      };
      await expectCaughtUp(cluster, 200);
      expect(count).toBeGreaterThan(5);
    }
  });

  it('also when every message comes twice', async () => {
    const { cluster } = await farBehind();
    cluster.fate = () => 2;
    await expectCaughtUp(cluster, 60);
  });

  it('also when the sender dies midway and another leader has a snapshot of its own', async () => {
    const { cluster, leader, late } = await farBehind();
    let chunks = 0;
    cluster.fate = (parcel) => {
      if (isChunk(parcel)) chunks += 1;
      return isChunk(parcel) && chunks > 3 ? 0 : 1;
    };
    await cluster.tickAll(3 * heartbeatTicks);
    expect(chunks).toBeGreaterThan(3);
    expect(late.app(1).index).toBeLessThan(10);
    leader.crash();
    cluster.heal();
    const next = await cluster.electAny(1);
    await fill(cluster, next, 1, 2);
    await expectCaughtUp(cluster, 10 * electionTicks);
    leader.start();
    await expectCaughtUp(cluster, 10 * electionTicks);
  });

  it('also when it dies itself midway, before or while the snapshot is written', async () => {
    for (let after = 1; after < 12; after += 1) {
      const { cluster, late } = await farBehind();
      let chunks = 0;
      let isDead = false;
      cluster.fate = (parcel) => {
        if (isChunk(parcel) && (chunks += 1) === after) isDead = true;
        return isDead ? 0 : 1;
      };
      await cluster.tickAll(3 * heartbeatTicks);
      late.crash(after % 2 === 0 ? 'lost' : 'kept');
      late.start();
      cluster.heal();
      await expectCaughtUp(cluster, 20 * electionTicks);
    }
  });

  it('also when the snapshot is replaced midway', async () => {
    const { cluster, leader } = await farBehind();
    let chunks = 0;
    // The stream stalls after a few chunks, while the leader takes one new snapshot after the other.
    cluster.fate = (parcel) => {
      if (isChunk(parcel)) chunks += 1;
      return isChunk(parcel) && chunks === 3 ? 0 : 1;
    };
    await cluster.tickAll(2 * heartbeatTicks);
    const first = leader.disk.get(1)?.snapshot?.index ?? 0;
    await fill(cluster, leader, 1, 150);
    expect(leader.disk.get(1)?.snapshot?.index).toBeGreaterThan(first);
    cluster.heal();
    await expectCaughtUp(cluster, 20 * electionTicks);
  });

  it('75: a stream to a node that went away does not keep others waiting', async () => {
    const cluster = new Cluster({ nodes: 5, driver: { streams: { outgoingMax: 1, silentTicksMax: 10 } } });
    const leader = await cluster.electAny(1);
    const late = cluster.members.filter(({ id }) => id !== leader.id).slice(0, 2);
    cluster.isolate(...late.map(({ id }) => id));
    await fill(cluster, leader, 1, 60);
    const [gone, other] = late;
    expect(other).toBeDefined();
    // Both ask; the first to be served vanishes in the middle of its stream.
    let chunks = 0;
    cluster.fate = ({ from, to, message }) => {
      if (message.kind === 'chunk' && to === gone?.id) chunks += 1;
      return chunks > 2 && (to === gone?.id || from === gone?.id) ? 0 : 1;
    };
    await cluster.tickAll(10 * electionTicks);
    expect(chunks).toBe(3);
    expect(other?.app(1).index).toBe(leader.app(1).index);
    cluster.heal();
    await expectCaughtUp(cluster, 20 * electionTicks);
  });

  it('chunks that claim more than the snapshot has are dropped, and nothing is answered', async () => {
    const cluster = new Cluster({ nodes: 3 });
    await cluster.electAny(1);
    const [member] = cluster.members;
    const meta = { index: 99, term: 1, timeMillis: 1, voters: [1, 2, 3], chunkCount: 2, byteLength: 10 };
    const common = { kind: 'chunk', group: 1, from: 2, term: 1, timeMillis: 1, meta } as const;
    cluster.sent.length = 0;
    cluster.isolate(1, 2, 3);
    member?.raft.receive([{ ...common, chunk: 0, data: new Uint8Array(11) }]);
    member?.raft.receive([{ ...common, chunk: 1, data: new Uint8Array(1) }]);
    await reads();
    member?.turn();
    expect(cluster.sent.filter(({ message }) => message.kind === 'chunkAck')).toEqual([]);
    expect(member?.fatals).toEqual([]);
  });
});

describe('failover', () => {
  it('to the same leader is news for the application of a follower that was not asked to vote', async () => {
    const cluster = new Cluster({ nodes: 3 });
    const leader = await cluster.electAny(1);
    const [voter, follower] = cluster.up.filter(({ id }) => id !== leader.id);
    if (voter === undefined || follower === undefined) throw new Error('two followers');
    await cluster.tickAll(heartbeatTicks);
    const { term } = leader.status(1);
    expect(follower.app(1).status).toEqual({ isLeader: false, term, leader: leader.id });
    cluster.fate = ({ to, message }) =>
      to === follower.id && message.kind === 'message' && message.message.type === 'vote' ? 0 : 1;
    // Somebody is in a newer term, so the leader loses its office, and is elected again at once.
    const answer = { type: 'appendResponse', from: voter.id, to: leader.id, term: term + 1 } as const;
    const message = { ...answer, rejected: true, index: 0, hintIndex: 0, hintTerm: 0 };
    leader.raft.receive([{ kind: 'message', group: 1, message }]);
    await cluster.settle();
    await cluster.tickAll(heartbeatTicks);
    const now = leader.status(1);
    expect(now.role).toBe('leader');
    expect(now.term).toBeGreaterThan(term);
    expect(follower.app(1).status).toEqual({ isLeader: false, term: now.term, leader: leader.id });
  });

  it('takes a few ticks when the connection of the leader breaks', async () => {
    const cluster = new Cluster({ nodes: 3, groups: 4 });
    const leaders = new Set<number>();
    for (const group of cluster.groups) leaders.add((await cluster.electAny(group)).id);
    const [dead] = leaders;
    expect(dead).toBeDefined();
    if (dead === undefined) return;
    cluster.member(dead).crash();
    for (const member of cluster.up) member.raft.peerLost(dead);
    await cluster.tickAll(2 + 2 * heartbeatTicks);
    for (const group of cluster.groups) expect(cluster.leaderOf(group)).toBeDefined();
  });
});
