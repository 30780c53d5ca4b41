/** Snapshot streams between nodes: broken streams resume, damaged snapshots are refused, and the rate is bounded. */
import { crc32 as zlibCrc32 } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { assert } from '../../../raft/assert.ts';
import { crc32 } from '../../../raft/driver/checksum.ts';
import type { MultiRaftOptions } from '../../../raft/driver/multi-raft.ts';
import type { SnapshotMeta } from '../../../raft/types.ts';
import { Cluster } from './cluster.ts';
import type { Node } from './node.ts';
import { ELECTION_TICKS, GROUP, HEARTBEAT_TICKS } from './options.ts';
import { chunkOf } from './parcel.ts';

interface Situation {
  readonly cluster: Cluster;
  readonly leader: Node;
  readonly late: Node;
}

/**
 * A group whose log begins behind a snapshot of eight chunks or more, and a learner that has nothing yet and is cut
 * off.
 */
async function behind(options: Partial<MultiRaftOptions> = {}): Promise<Situation> {
  const cluster = new Cluster({ voters: 3, options: { snapshotEveryBytes: 300, ...options } });
  for (let i = 0; i < 40; i += 1) await cluster.commit(`${i}`);
  const leader = await cluster.elect();
  expect(leader.status.logStart).toBeGreaterThan(0);
  const late = cluster.add(4);
  return { cluster, leader, late };
}

/** Five chunks arrive, and nothing after them. The sender notices that the connection is lost, or does not. */
async function broken(isNoticed = true): Promise<Situation> {
  const { cluster, leader, late } = await behind();
  let count = 0;
  cluster.passes = (parcel) => {
    if (chunkOf(parcel) !== undefined) count += 1;
    return count <= 5 || parcel.to !== late.id;
  };
  await cluster.changed([{ kind: 'addLearner', node: late.id }]);
  await cluster.tick();
  expect(chunksSent(cluster)).toEqual([0, 1, 2, 3, 4, 5]);
  cluster.sent.length = 0;
  if (isNoticed) leader.raft.peerLost(late.id);
  return { cluster, leader, late };
}

/** The connection is there again: the chunks that are sent until the node has caught up. */
async function chunksOnceHealed({ cluster, leader, late }: Situation): Promise<number[]> {
  cluster.heal();
  await cluster.until(() => late.app.index === leader.app.index);
  return chunksSent(cluster);
}

const snapshotOf = ({ disk }: Node): SnapshotMeta => {
  const snapshot = disk.get(GROUP)?.snapshot;
  assert(snapshot !== undefined, 'a snapshot was taken');
  return snapshot;
};

/** The numbers of its chunks. */
const chunksOf = (node: Node): number[] => [...Array(snapshotOf(node).chunkCount).keys()];

const chunksSent = (cluster: Cluster): number[] =>
  cluster.sent.flatMap((parcel) => chunkOf(parcel)?.chunk ?? []);

describe('a stream that broke', () => {
  it.each([true, false])(
    'is resumed behind the last chunk that arrived; the sender knows that the connection is lost: %s',
    async (isKnown) => {
      const situation = await broken(isKnown);
      if (!isKnown) await situation.cluster.tick(20);
      // Chunk 0 asks how far the receiver is; its answer names chunk 4.
      const rest = chunksOf(situation.leader).slice(5);
      expect(await chunksOnceHealed(situation)).toEqual([0, ...rest]);
    },
  );

  it('begins again when the receiver has forgotten the chunks that it had', async () => {
    const situation = await broken();
    situation.late.crash();
    situation.late.start();
    expect(await chunksOnceHealed(situation)).toEqual(chunksOf(situation.leader));
  });

  it('begins again when the snapshot was replaced meanwhile', async () => {
    const situation = await broken();
    const { cluster, leader } = situation;
    const { index } = snapshotOf(leader);
    for (let i = 0; i < 40; i += 1) await cluster.commit(`more ${i}`);
    expect(snapshotOf(leader).index).toBeGreaterThan(index);
    cluster.sent.length = 0;
    expect(await chunksOnceHealed(situation)).toEqual(chunksOf(leader));
  });
});

describe('a snapshot that was damaged on its way', () => {
  it.each(['a flipped bit', 'a chunk that is shorter'])('76: is not installed: %s', async (damage) => {
    const { cluster, leader, late } = await behind();
    const restored = late.app.index;
    let damaged = 0;
    cluster.passes = (parcel) => {
      const chunk = chunkOf(parcel);
      if (chunk?.chunk !== 3 || damaged > 0) return true;
      damaged += 1;
      const data = damage === 'a flipped bit' ? chunk.data.slice() : chunk.data.slice(1);
      data.set([(data[0] ?? 0) ^ 1], 0);
      cluster.node(parcel.to).raft.receive([{ ...chunk, data }]);
      return false;
    };
    await cluster.changed([{ kind: 'addLearner', node: late.id }]);
    await cluster.tick(2);
    expect(damaged).toBe(1);
    expect(late.app.index).toBe(restored);
    // The next attempt is whole.
    await cluster.until(() => late.app.index === leader.app.index);
    expect(snapshotOf(late).checksum).toBe(snapshotOf(leader).checksum);
  });

  it('is found by a checksum that each node computes of its stored chunks', async () => {
    const { leader } = await behind();
    const stored = leader.disk.get(GROUP);
    expect(stored?.snapshot?.checksum).toBe(zlibCrc32(Buffer.concat(stored?.chunks ?? [])));
  });
});

describe('the rate', () => {
  it('of all streams together is bounded', async () => {
    const bytesPerTickMax = 30;
    const { cluster, leader, late } = await behind({
      streams: { outgoingMax: 4, silentTicksMax: 10, bytesPerTickMax },
    });
    const other = cluster.add(5);
    await cluster.changed([{ kind: 'addLearner', node: late.id }]);
    await cluster.changed([{ kind: 'addLearner', node: other.id }]);
    cluster.sent.length = 0;
    const ticks = 2 * ELECTION_TICKS;
    await cluster.tick(ticks);
    let bytes = 0;
    for (const parcel of cluster.sent) bytes += chunkOf(parcel)?.data.byteLength ?? 0;
    // Only the last chunk exceeds the rate: a chunk leaves whole.
    expect(bytes).toBeLessThanOrEqual(bytesPerTickMax * ticks + 100);
    expect(bytes).toBeGreaterThan(bytesPerTickMax * (ticks - HEARTBEAT_TICKS) - 200);
    await cluster.until(() => late.app.index === leader.app.index && other.app.index === leader.app.index);
  });
});

describe('the checksum', () => {
  it('equals that of zlib, for any cuts of the bytes', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 50 }), { maxLength: 5 }), (pieces) => {
        let checksum = 0;
        for (const piece of pieces) checksum = crc32(piece, checksum);
        expect(checksum).toBe(zlibCrc32(Buffer.concat(pieces)));
      }),
    );
  });
});
