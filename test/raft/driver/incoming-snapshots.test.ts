/**
 * Snapshots of a leader on a follower: staged on disk chunk by chunk, read back and checked, and put in effect by a small
 * write. They were collected in memory, installed in one write of any size, and looked at when they had replaced the log.
 */
import { describe, expect, it } from 'vitest';
import type { GroupWrite } from '../../../raft/driver/store.ts';
import type { SnapshotMeta } from '../../../raft/types.ts';
import { Cluster, CLUSTER_OPTIONS, type ClusterOptions, type Member, type Parcel } from './cluster.ts';

const { heartbeatTicks, electionTicks } = CLUSTER_OPTIONS.raft;
const { silentTicksMax } = CLUSTER_OPTIONS.streams;
const GROUP = 1;

async function fill(cluster: Cluster, leader: Member, group: number, count: number): Promise<void> {
  for (let i = 0; i < count; i += 1) {
    leader.propose(group, `${leader.id}/${group}/${i}/${'x'.repeat(40)}`);
    await cluster.settle();
  }
}

interface Behind {
  readonly cluster: Cluster;
  readonly leader: Member;
  /** Needs a snapshot of each group, and is cut off. */
  readonly late: Member;
}

async function behind(options: Partial<ClusterOptions> = {}): Promise<Behind> {
  const cluster = new Cluster({ nodes: 3, ...options });
  const leader = await cluster.electAny(GROUP);
  const late = cluster.members.find(({ id }) => id !== leader.id);
  if (late === undefined) throw new Error('a follower');
  // It has applied all there is so far.
  await cluster.tickAll(2 * heartbeatTicks);
  cluster.isolate(late.id);
  // Of every group: it may be led by anybody else.
  await cluster.tickAll(4 * electionTicks);
  for (const group of cluster.groups) {
    const from = cluster.leaderOf(group);
    if (from !== undefined) await fill(cluster, from, group, 60);
  }
  late.writes.length = 0;
  cluster.sent.length = 0;
  return { cluster, leader: cluster.leaderOf(GROUP) ?? leader, late };
}

const isChunk = ({ message }: Parcel): boolean => message.kind === 'chunk';
const chunksTo = (cluster: Cluster, member: Member): number =>
  cluster.sent.filter((parcel) => parcel.to === member.id && isChunk(parcel)).length;

function chunkBytes({ stage }: GroupWrite): number {
  return (stage?.chunks ?? []).reduce((sum, chunk) => sum + chunk.length, 0);
}

function hasCaughtUp({ leader, late }: Behind, group = GROUP): boolean {
  return late.app(group).index === (leader.cluster.leaderOf(group) ?? leader).app(group).index;
}

async function untilCaughtUp(situation: Behind, group = GROUP): Promise<void> {
  for (let i = 0; i < 40 * electionTicks && !hasCaughtUp(situation, group); i += 1) {
    await situation.cluster.tickAll();
  }
  expect(hasCaughtUp(situation, group)).toBe(true);
  expect(situation.late.fatals).toEqual([]);
}

describe('a snapshot of the leader', () => {
  it('is staged with bounded writes, and put in effect by one that holds none of it', async () => {
    const situation = await behind();
    situation.cluster.heal();
    await untilCaughtUp(situation);
    const writes = situation.late.writes.flat();
    const staged = writes.filter((write) => write.stage !== undefined);
    expect(staged.length).toBeGreaterThan(4);
    for (const write of staged)
      expect(chunkBytes(write)).toBeLessThanOrEqual(CLUSTER_OPTIONS.snapshotWriteBytesMax);
    const installs = writes.filter((write) => write.install !== undefined);
    expect(installs.map(chunkBytes)).toEqual([0]);
  });

  it('comes no faster than the disk takes it: no second chunk is sent before the first is on disk', async () => {
    const situation = await behind();
    const { cluster, late } = situation;
    cluster.heal();
    for (let i = 0; i < 100 && chunksTo(cluster, late) === 0; i += 1) await cluster.tickAll();
    // Everything but the disk of the follower goes on.
    const before = chunksTo(cluster, late);
    const written = late.disk;
    for (let i = 0; i < 20; i += 1) {
      for (const parcel of cluster.queue.splice(0)) cluster.deliver(parcel);
      for (const member of cluster.up) {
        while (member.hasTurn) member.turn();
        if (member !== late && member.isWriting) member.sync();
      }
      await Promise.resolve();
    }
    expect(late.disk).toEqual(written);
    expect(chunksTo(cluster, late)).toBeLessThanOrEqual(before + 1);
    await untilCaughtUp(situation);
  });

  it.each(['add', 'complete'] as const)(
    'is read and checked before it replaces anything: one that is unsound (%s) is forgotten, and sent again',
    async (step) => {
      const situation = await behind();
      const { cluster, late } = situation;
      const { index } = late.app(GROUP);
      const log = late.disk.get(GROUP)?.entries;
      late.app(GROUP).unsoundAt = step;
      cluster.heal();
      await cluster.tickAll(2 * silentTicksMax);
      expect(late.refused.length).toBeGreaterThan(0);
      expect(late.app(GROUP).index).toBe(index);
      expect(late.disk.get(GROUP)).toMatchObject({ entries: log });
      expect(late.fatals).toEqual([]);
      late.app(GROUP).unsoundAt = undefined;
      await untilCaughtUp(situation);
    },
  );

  it('is acknowledged to the end when it is installed, and the stream lives until then', async () => {
    const situation = await behind();
    const { cluster, late } = situation;
    late.readsHeld = [];
    cluster.heal();
    await cluster.tickAll(10 * silentTicksMax);
    // Reading it back takes ever so long: it is not sent again, and nothing has changed yet.
    const sent = chunksTo(cluster, late);
    expect(late.app(GROUP).index).toBeLessThan(10);
    expect(late.app(GROUP).building).toBe(1);
    await cluster.tickAll(10 * silentTicksMax);
    expect(chunksTo(cluster, late)).toBe(sent);
    const numbers = cluster.sent
      .filter(isChunk)
      .map(({ message }) => message.kind === 'chunk' && message.chunk);
    expect(numbers).toEqual(numbers.map((_, i) => i));
    late.releaseReads();
    await untilCaughtUp(situation);
    expect(chunksTo(cluster, late)).toBe(sent);
  });

  it('is given up when the group has caught up by appends meanwhile', async () => {
    const situation = await behind();
    const { cluster, leader, late } = situation;
    // The third has kept all of its log, and leads when the others are gone.
    const other = cluster.members.find((member) => member !== leader && member !== late);
    late.readsHeld = [];
    cluster.heal();
    await cluster.tickAll(5 * heartbeatTicks);
    expect(late.app(GROUP).building).toBe(1);
    const { meta } = snapshotSentTo(cluster, late);
    const entries = [...(other?.app(GROUP).applied ?? [])].slice(late.status(GROUP).lastIndex);
    const { term } = leader.status(GROUP);
    const prev = late.app(GROUP).applied.at(-1) ?? { index: 0, term: 0 };
    const append = { type: 'append', from: leader.id, to: late.id, term } as const;
    const message = {
      ...append,
      prevIndex: prev.index,
      prevTerm: prev.term,
      entries,
      commit: meta.index,
      timeMillis: 0,
    };
    late.raft.receive([{ kind: 'message', group: GROUP, message }]);
    await cluster.settle();
    expect(late.app(GROUP).index).toBeGreaterThanOrEqual(meta.index);
    late.releaseReads();
    await untilCaughtUp(situation);
    expect(late.writes.flat().filter(({ install }) => install !== undefined)).toEqual([]);
    // And nobody sends it again.
    const sent = chunksTo(cluster, late);
    await cluster.tickAll(4 * silentTicksMax);
    expect(chunksTo(cluster, late)).toBe(sent);
  });

  it('of several groups: one is restored at a time, and the others wait', async () => {
    const situation = await behind({ groups: 4 });
    const { cluster, late } = situation;
    const building = (): number => cluster.groups.reduce((sum, group) => sum + late.app(group).building, 0);
    late.readsHeld = [];
    cluster.heal();
    await cluster.tickAll(4 * electionTicks);
    expect(building()).toBe(1);
    late.releaseReads();
    for (let i = 0; i < 40 * electionTicks; i += 1) {
      await cluster.tickAll();
      expect(building()).toBeLessThanOrEqual(1);
    }
    for (const group of cluster.groups) expect(hasCaughtUp(situation, group)).toBe(true);
  });

  it('takes the place of one that the group writes of its own state', async () => {
    const situation = await behind({ driver: { snapshotWriteBytesMax: 1 } });
    const { cluster, leader, late } = situation;
    const source = { abandoned: 0 };
    const app = late.app(GROUP);
    const snapshot = app.snapshot.bind(app);
    app.snapshot = () => ({
      ...snapshot(),
      abandon() {
        source.abandoned += 1;
      },
    });
    // It applies enough for a snapshot of its own, and its disk takes the first chunk when the leader's arrives.
    cluster.fate = () => 0;
    const { term } = leader.status(GROUP);
    const prev = late.app(GROUP).applied.at(-1) ?? { index: 0, term: 0 };
    const entries = leader.app(GROUP).applied.slice(prev.index, prev.index + 20);
    const append = { type: 'append', from: leader.id, to: late.id, term } as const;
    const commit = entries.at(-1)?.index ?? 0;
    const message = { ...append, prevIndex: prev.index, prevTerm: prev.term, entries, commit, timeMillis: 0 };
    late.raft.receive([{ kind: 'message', group: GROUP, message }]);
    late.turn();
    while (late.isWriting && late.writes.flat().every(({ stage }) => stage === undefined)) late.sync();
    const meta = {
      index: 900,
      term: term + 1,
      timeMillis: 1,
      voters: [1, 2, 3],
      chunkCount: 2,
      byteLength: 9,
    };
    const chunk = {
      kind: 'chunk',
      group: GROUP,
      from: leader.id,
      term,
      timeMillis: 1,
      meta,
      chunk: 0,
      data: new Uint8Array(5),
    } as const;
    late.raft.receive([chunk]);
    late.turn();
    expect(source.abandoned).toBe(1);
    for (let i = 0; i < 5 && (late.isWriting || late.hasTurn); i += 1) {
      if (late.isWriting) late.sync();
      else late.turn();
    }
    expect(late.writes.flat().findLast(({ stage }) => stage !== undefined)?.stage).toMatchObject({
      index: 900,
      first: 0,
    });
    expect(late.fatals).toEqual([]);
  });

  it.each(['term', 'byteLength', 'chunkCount', 'checksum'] as const)(
    'is not mixed with another of its index, that differs by its %s: the other begins at its first chunk',
    async (field) => {
      const { cluster, leader, late } = await behind();
      const { term } = leader.status(GROUP);
      const voters = [1, 2, 3];
      const one = { index: 900, term, timeMillis: 1, voters, chunkCount: 3, byteLength: 15, checksum: 7 };
      const other = { ...one, [field]: one[field] + 1 };
      const receive = async (meta: SnapshotMeta, chunk: number, data: string): Promise<void> => {
        const from = { group: GROUP, from: leader.id, term: term + 1, timeMillis: 1 };
        late.raft.receive([{ kind: 'chunk', ...from, meta, chunk, data: new TextEncoder().encode(data) }]);
        await cluster.settle();
      };
      await receive(one, 0, 'one 0');
      await receive(other, 1, 'two 1');
      await receive(other, 0, 'two 0');
      await receive(one, 1, 'one 1');
      await receive(other, 1, 'two 1');
      const staged = late.writes.flat().flatMap(({ stage }) => (stage === undefined ? [] : [stage]));
      const told = staged.map(({ first, chunks }) => [
        first,
        ...chunks.map((data) => new TextDecoder().decode(data)),
      ]);
      expect(told).toEqual([
        [0, 'one 0'],
        [0, 'two 0'],
        [1, 'two 1'],
      ]);
    },
  );
});

function snapshotSentTo(cluster: Cluster, member: Member): { readonly meta: { readonly index: number } } {
  for (const { to, message } of cluster.sent)
    if (to === member.id && message.kind === 'chunk') return message;
  throw new Error('a snapshot was sent');
}
