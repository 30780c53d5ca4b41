/**
 * Snapshots from a leader on a follower: staged on disk chunk by chunk, read back and verified, and put into effect by
 * a small write.
 */
import { describe, expect, it } from 'vitest';
import type { PeerMessage } from '../../../raft/driver/peer-message.ts';
import type { Entry, SnapshotMeta } from '../../../raft/types.ts';
import type { Cluster } from './cluster.ts';
import type { Node } from './node.ts';
import { COMPACTING, ELECTION_TICKS, GROUP, HEARTBEAT_TICKS } from './options.ts';
import { chunkOf } from './parcel.ts';
import { type Behind, behind, isChunk, stagedBytes } from './snapshots-under-way.ts';

const { silentTicksMax } = COMPACTING.streams;

const chunksTo = (cluster: Cluster, node: Node): number =>
  cluster.sent.filter((parcel) => parcel.to === node.id && isChunk(parcel)).length;

/** The append that `leader` would send to a node that has applied its whole log and has no snapshot. */
function append(leader: Node, to: Node, entries: readonly Entry[], commit: number): PeerMessage {
  const { index: prevIndex, term: prevTerm } = to.app.applied.at(-1) ?? { index: 0, term: 0 };
  const { term } = leader.status;
  const common = { type: 'append', from: leader.id, to: to.id, term, timeMillis: 0 } as const;
  return { kind: 'message', group: GROUP, message: { ...common, prevIndex, prevTerm, entries, commit } };
}

function hasCaughtUp({ cluster, leader, late }: Behind, group = GROUP): boolean {
  return late.appOf(group).index === (cluster.leaderOf(group) ?? leader).appOf(group).index;
}

async function untilCaughtUp(situation: Behind, group = GROUP): Promise<void> {
  for (let i = 0; i < 40 * ELECTION_TICKS && !hasCaughtUp(situation, group); i += 1) {
    await situation.cluster.tick();
  }
  expect(hasCaughtUp(situation, group)).toBe(true);
}

describe('a snapshot of the leader', () => {
  it('is staged with bounded writes, and put into effect by a write that contains no chunks', async () => {
    const situation = await behind();
    situation.cluster.heal();
    await untilCaughtUp(situation);
    const writes = situation.late.store.writes.flat();
    const staged = writes.filter((write) => write.stage !== undefined);
    expect(staged.length).toBeGreaterThan(4);
    for (const write of staged)
      expect(stagedBytes(write)).toBeLessThanOrEqual(COMPACTING.snapshotWriteBytesMax);
    const installs = writes.filter((write) => write.install !== undefined);
    expect(installs.map(stagedBytes)).toEqual([0]);
  });

  it('comes no faster than the disk writes it: no second chunk is sent before the first is on disk', async () => {
    const situation = await behind();
    const { cluster, late } = situation;
    cluster.heal();
    for (let i = 0; i < 100 && chunksTo(cluster, late) === 0; i += 1) await cluster.tick();
    // Everything but the disk of the follower goes on.
    const before = chunksTo(cluster, late);
    const written = late.disk;
    for (let i = 0; i < 20; i += 1) {
      cluster.deliverAll();
      for (const node of cluster.up) {
        while (node.hasTurn) node.turn();
        if (node !== late && node.isWriting) node.sync();
      }
      await Promise.resolve();
    }
    expect(late.disk).toEqual(written);
    expect(chunksTo(cluster, late)).toBeLessThanOrEqual(before + 1);
    await untilCaughtUp(situation);
  });

  it.each(['add', 'complete'] as const)(
    'is read and checked before it replaces anything: a damaged one (%s) is forgotten, and sent again',
    async (step) => {
      const situation = await behind();
      const { cluster, late } = situation;
      const { index } = late.app;
      const log = late.disk.get(GROUP)?.entries;
      late.app.unsoundAt = step;
      cluster.heal();
      await cluster.tick(2 * silentTicksMax);
      expect(late.refused.length).toBeGreaterThan(0);
      expect(late.app.index).toBe(index);
      expect(late.disk.get(GROUP)).toMatchObject({ entries: log });
      expect(late.fatals).toEqual([]);
      late.app.unsoundAt = undefined;
      await untilCaughtUp(situation);
    },
  );

  it('gets its last acknowledgement when it is installed, and its stream is open until then', async () => {
    const situation = await behind();
    const { cluster, late } = situation;
    late.store.holdReads();
    cluster.heal();
    await cluster.tick(10 * silentTicksMax);
    // Reading it back takes very long: it is not sent again, and nothing has changed yet.
    const sent = chunksTo(cluster, late);
    expect(late.app.index).toBeLessThan(10);
    expect(late.app.building).toBe(1);
    await cluster.tick(10 * silentTicksMax);
    expect(chunksTo(cluster, late)).toBe(sent);
    const numbers = cluster.sent.filter(isChunk).map((parcel) => chunkOf(parcel)?.chunk);
    expect(numbers).toEqual(numbers.map((_, i) => i));
    late.store.releaseReads();
    await untilCaughtUp(situation);
    expect(chunksTo(cluster, late)).toBe(sent);
  });

  it('is dropped when the group has caught up by appends meanwhile', async () => {
    const situation = await behind();
    const { cluster, leader, late } = situation;
    // The third has kept all of its log, and leads when the others are gone.
    const other = cluster.otherThan(leader, late);
    late.store.holdReads();
    cluster.heal();
    await cluster.tick(5 * HEARTBEAT_TICKS);
    expect(late.app.building).toBe(1);
    const { meta } = snapshotSentTo(cluster, late);
    const entries = [...other.app.applied].slice(late.status.lastIndex);
    late.raft.receive([append(leader, late, entries, meta.index)]);
    await cluster.settle();
    expect(late.app.index).toBeGreaterThanOrEqual(meta.index);
    late.store.releaseReads();
    await untilCaughtUp(situation);
    expect(late.store.writes.flat().filter(({ install }) => install !== undefined)).toEqual([]);
    // And no node sends it again.
    const sent = chunksTo(cluster, late);
    await cluster.tick(4 * silentTicksMax);
    expect(chunksTo(cluster, late)).toBe(sent);
  });

  it('of several groups is restored one group at a time', async () => {
    const situation = await behind({ groups: 4 });
    const { cluster, late } = situation;
    const building = (): number => cluster.groups.reduce((sum, group) => sum + late.appOf(group).building, 0);
    late.store.holdReads();
    cluster.heal();
    await cluster.tick(4 * ELECTION_TICKS);
    expect(building()).toBe(1);
    late.store.releaseReads();
    for (let i = 0; i < 40 * ELECTION_TICKS; i += 1) {
      await cluster.tick();
      expect(building()).toBeLessThanOrEqual(1);
    }
    for (const group of cluster.groups) expect(hasCaughtUp(situation, group)).toBe(true);
  });

  it("replaces the group's own snapshot that is being written", async () => {
    const situation = await behind({ options: { snapshotWriteBytesMax: 1 } });
    const { cluster, leader, late } = situation;
    const source = { abandoned: 0 };
    const app = late.app;
    const snapshot = app.snapshot.bind(app);
    app.snapshot = () => ({
      ...snapshot(),
      abandon() {
        source.abandoned += 1;
      },
    });
    // It applies enough for a snapshot of its own, and its disk takes the first chunk when the leader's arrives.
    cluster.passes = () => false;
    const { term } = leader.status;
    const entries = leader.app.applied.slice(late.app.index, late.app.index + 20);
    late.raft.receive([append(leader, late, entries, entries.at(-1)?.index ?? 0)]);
    late.turn();
    while (late.isWriting && late.store.writes.flat().every(({ stage }) => stage === undefined)) late.sync();
    const one = { index: 900, term: term + 1, timeMillis: 1, voters: [1, 2, 3] };
    const meta = { ...one, chunkCount: 2, byteLength: 9 };
    const from = { group: GROUP, from: leader.id, term, timeMillis: 1 };
    late.raft.receive([{ kind: 'chunk', ...from, meta, chunk: 0, data: new Uint8Array(5) }]);
    late.turn();
    expect(source.abandoned).toBe(1);
    for (let i = 0; i < 5 && (late.isWriting || late.hasTurn); i += 1) {
      if (late.isWriting) late.sync();
      else late.turn();
    }
    expect(late.store.writes.flat().findLast(({ stage }) => stage !== undefined)?.stage).toMatchObject({
      index: 900,
      first: 0,
    });
    expect(late.fatals).toEqual([]);
  });

  it.each(['term', 'byteLength', 'chunkCount', 'checksum'] as const)(
    'is not mixed with one of the same index and another %s: that one begins at its first chunk',
    async (field) => {
      const { cluster, leader, late } = await behind();
      const { term } = leader.status;
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
      const staged = late.store.writes.flat().flatMap(({ stage }) => (stage === undefined ? [] : [stage]));
      const reported = staged.map(({ first, chunks }) => [
        first,
        ...chunks.map((data) => new TextDecoder().decode(data)),
      ]);
      expect(reported).toEqual([
        [0, 'one 0'],
        [0, 'two 0'],
        [1, 'two 1'],
      ]);
    },
  );
});

function snapshotSentTo(cluster: Cluster, node: Node): { readonly meta: { readonly index: number } } {
  for (const { to, message } of cluster.sent) if (to === node.id && message.kind === 'chunk') return message;
  throw new Error('a snapshot was sent');
}
