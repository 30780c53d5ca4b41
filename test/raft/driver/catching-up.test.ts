/**
 * A follower whose next entry the leader has compacted catches up, also when messages are lost or nodes crash
 * meanwhile.
 */
import { describe, expect, it } from 'vitest';
import { chunkReads, Cluster } from './cluster.ts';
import { COMPACTING, ELECTION_TICKS, HEARTBEAT_TICKS } from './options.ts';
import { chunkOf } from './parcel.ts';
import { type Behind, behind, isChunk } from './snapshots-under-way.ts';

/** The follower is connected again. */
async function reachable(): Promise<Behind> {
  const situation = await behind();
  situation.cluster.heal();
  return situation;
}

async function expectCaughtUp(cluster: Cluster, ticks: number): Promise<void> {
  await cluster.tick(ticks);
  expect(cluster.isLevel()).toBe(true);
}

describe('a follower that is far behind', () => {
  it('gets a snapshot in chunks, one after the other, then appends', async () => {
    const { cluster, late } = await reachable();
    await expectCaughtUp(cluster, 4 * HEARTBEAT_TICKS);
    const numbers = cluster.sent.filter(isChunk).map((parcel) => chunkOf(parcel)?.chunk);
    expect(numbers).toEqual(numbers.map((_, i) => i));
    expect(numbers.length).toBeGreaterThan(4);
    await cluster.fill(3);
    await expectCaughtUp(cluster, HEARTBEAT_TICKS);
    // The snapshot is on disk: a restart needs no other one.
    late.crash();
    cluster.sent.length = 0;
    late.start();
    await expectCaughtUp(cluster, 4 * HEARTBEAT_TICKS);
    expect(cluster.sent.filter(isChunk)).toEqual([]);
  });

  it('catches up when chunks and their acknowledgements are lost', async () => {
    for (const kind of ['chunk', 'chunkAck'] as const) {
      const { cluster } = await reachable();
      let count = 0;
      cluster.passes = ({ message }) => {
        if (message.kind !== kind) return true;
        count += 1;
        return count % 3 !== 0 || count >= 12;
      };
      await expectCaughtUp(cluster, 200);
      expect(count).toBeGreaterThan(5);
    }
  });

  it('catches up when every message comes twice', async () => {
    const { cluster } = await reachable();
    cluster.passes = ({ to, message }) => {
      cluster.node(to).raft.receive([message]);
      return true;
    };
    await expectCaughtUp(cluster, 60);
  });

  it('catches up when the sender dies midway and the next leader has a snapshot of its own', async () => {
    const { cluster, leader, late } = await reachable();
    let chunks = 0;
    cluster.passes = (parcel) => {
      if (isChunk(parcel)) chunks += 1;
      return !isChunk(parcel) || chunks <= 3;
    };
    await cluster.tick(3 * HEARTBEAT_TICKS);
    expect(chunks).toBeGreaterThan(3);
    expect(late.app.index).toBeLessThan(10);
    leader.crash();
    cluster.heal();
    await cluster.fill(2);
    await expectCaughtUp(cluster, 10 * ELECTION_TICKS);
    leader.start();
    await expectCaughtUp(cluster, 10 * ELECTION_TICKS);
  });

  it('catches up when it dies midway itself, before or while the snapshot is written', async () => {
    for (let after = 1; after < 12; after += 1) {
      const { cluster, late } = await reachable();
      let chunks = 0;
      let isDead = false;
      cluster.passes = (parcel) => {
        if (isChunk(parcel) && (chunks += 1) === after) isDead = true;
        return !isDead;
      };
      await cluster.tick(3 * HEARTBEAT_TICKS);
      late.crash(after % 2 === 0 ? 'lost' : 'kept');
      late.start();
      cluster.heal();
      await expectCaughtUp(cluster, 20 * ELECTION_TICKS);
    }
  });

  it('catches up when the snapshot is replaced midway', async () => {
    const { cluster, leader } = await reachable();
    let chunks = 0;
    // The stream stalls after a few chunks, while the leader takes one new snapshot after the other.
    cluster.passes = (parcel) => {
      if (isChunk(parcel)) chunks += 1;
      return !isChunk(parcel) || chunks !== 3;
    };
    await cluster.tick(2 * HEARTBEAT_TICKS);
    const first = leader.disk.get(1)?.snapshot?.index ?? 0;
    await cluster.fill(150);
    expect(leader.disk.get(1)?.snapshot?.index).toBeGreaterThan(first);
    cluster.heal();
    await expectCaughtUp(cluster, 20 * ELECTION_TICKS);
  });

  it('75: does not wait for a stream to another node that went away', async () => {
    const streams = { outgoingMax: 1, silentTicksMax: 10 };
    const cluster = new Cluster({ voters: 5, options: { ...COMPACTING, streams } });
    const leader = await cluster.elect();
    const late = cluster.up.filter(({ id }) => id !== leader.id).slice(0, 2);
    cluster.isolate(...late.map(({ id }) => id));
    await cluster.fill(60);
    const [gone, other] = late;
    expect(other).toBeDefined();
    // Both need a snapshot; the first to get it vanishes in the middle of its stream.
    let chunks = 0;
    cluster.passes = ({ from, to, message }) => {
      if (message.kind === 'chunk' && to === gone?.id) chunks += 1;
      return chunks <= 2 || (to !== gone?.id && from !== gone?.id);
    };
    await cluster.tick(10 * ELECTION_TICKS);
    expect(chunks).toBe(3);
    expect(other?.app.index).toBe(leader.app.index);
    cluster.heal();
    await expectCaughtUp(cluster, 20 * ELECTION_TICKS);
  });

  it('drops chunks that reach beyond the snapshot, and answers nothing', async () => {
    const cluster = new Cluster({ voters: 3 });
    await cluster.elect();
    const node = cluster.node(1);
    const meta = { index: 99, term: 1, timeMillis: 1, voters: [1, 2, 3], chunkCount: 2, byteLength: 10 };
    const common = { kind: 'chunk', group: 1, from: 2, term: 1, timeMillis: 1, meta } as const;
    cluster.sent.length = 0;
    cluster.isolate(1, 2, 3);
    node.raft.receive([{ ...common, chunk: 0, data: new Uint8Array(11) }]);
    node.raft.receive([{ ...common, chunk: 1, data: new Uint8Array(1) }]);
    await chunkReads();
    node.turn();
    expect(cluster.sent.filter(({ message }) => message.kind === 'chunkAck')).toEqual([]);
    expect(node.fatals).toEqual([]);
  });
});
