/** Snapshots on their way between nodes: broken streams go on where they ended, nothing damaged gets in, no link is flooded. */
import { crc32 as zlibCrc32 } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { crc32 } from '../../../raft/driver/checksum.ts';
import type { MultiRaftOptions } from '../../../raft/driver/multi-raft.ts';
import type { SnapshotChunk } from '../../../raft/driver/peer-message.ts';
import { ELECTION_TICKS, GROUP, HEARTBEAT_TICKS, type Node, type Parcel, World } from './members.ts';

const chunkOf = ({ message }: Parcel): SnapshotChunk | undefined =>
  message.kind === 'chunk' ? message : undefined;

/** A group whose log begins behind a snapshot of eight chunks, and a learner that has nothing yet and is cut off. */
async function behind(
  options: Partial<MultiRaftOptions> = {},
): Promise<{ world: World; leader: Node; late: Node }> {
  const world = new World({ voters: 3, options: { snapshotEveryBytes: 300, ...options } });
  for (let i = 0; i < 40; i += 1) await world.commit(`${i}`);
  const leader = await world.elect();
  expect(leader.status.logStart).toBeGreaterThan(0);
  const late = world.add(4);
  return { world, leader, late };
}

const chunksSent = (world: World): number[] => world.sent.flatMap((parcel) => chunkOf(parcel)?.chunk ?? []);

describe('a stream that broke', () => {
  it.each([true, false])(
    'is resumed behind the last chunk that arrived; connection known to be lost: %s',
    async (isKnown) => {
      const { world, leader, late } = await behind();
      let count = 0;
      world.passes = (parcel) => {
        if (chunkOf(parcel) !== undefined) count += 1;
        return count <= 5 || parcel.to !== late.id;
      };
      await world.changed([{ kind: 'addLearner', node: late.id }]);
      await world.tick();
      expect(chunksSent(world)).toEqual([0, 1, 2, 3, 4, 5]);
      world.sent.length = 0;
      if (isKnown) leader.raft.peerLost(late.id);
      else await world.tick(20);
      world.heal();
      await world.until(() => late.app.index === leader.app.index);
      // Chunk 0 asks how far the receiver is; its answer names chunk 4.
      expect(chunksSent(world)).toEqual([0, 5, 6, 7]);
    },
  );

  it('begins anew when the receiver has forgotten what it had', async () => {
    const { world, leader, late } = await behind();
    let count = 0;
    world.passes = (parcel) => {
      if (chunkOf(parcel) !== undefined) count += 1;
      return count <= 5 || parcel.to !== late.id;
    };
    await world.changed([{ kind: 'addLearner', node: late.id }]);
    await world.tick();
    leader.raft.peerLost(late.id);
    late.crash();
    late.start();
    world.heal();
    world.sent.length = 0;
    await world.until(() => late.app.index === leader.app.index);
    expect(chunksSent(world)).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  });

  it('begins anew when the snapshot was replaced meanwhile', async () => {
    const { world, leader, late } = await behind();
    let count = 0;
    world.passes = (parcel) => {
      if (chunkOf(parcel) !== undefined) count += 1;
      return count <= 5 || parcel.to !== late.id;
    };
    await world.changed([{ kind: 'addLearner', node: late.id }]);
    await world.tick();
    leader.raft.peerLost(late.id);
    const index = leader.disk.get(GROUP)?.snapshot?.index ?? 0;
    for (let i = 0; i < 40; i += 1) await world.commit(`more ${i}`);
    expect(leader.disk.get(GROUP)?.snapshot?.index).toBeGreaterThan(index);
    world.heal();
    world.sent.length = 0;
    await world.until(() => late.app.index === leader.app.index);
    expect(chunksSent(world)).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  });
});

describe('a snapshot that is not what it was', () => {
  it.each(['a flipped bit', 'a chunk that is shorter'])('76: is not installed: %s', async (damage) => {
    const { world, leader, late } = await behind();
    const restored = late.app.index;
    let damaged = 0;
    world.passes = (parcel) => {
      const chunk = chunkOf(parcel);
      if (chunk?.chunk !== 3 || damaged > 0) return true;
      damaged += 1;
      const data = damage === 'a flipped bit' ? chunk.data.slice() : chunk.data.slice(1);
      data.set([(data[0] ?? 0) ^ 1], 0);
      world.node(parcel.to).raft.receive([{ ...chunk, data }]);
      return false;
    };
    await world.changed([{ kind: 'addLearner', node: late.id }]);
    await world.tick(2);
    expect(damaged).toBe(1);
    expect(late.app.index).toBe(restored);
    // The next attempt is whole.
    await world.until(() => late.app.index === leader.app.index);
    expect(late.disk.get(GROUP)?.snapshot?.checksum).toBe(leader.disk.get(GROUP)?.snapshot?.checksum);
  });

  it('each node that takes one computes the checksum of what it stored', async () => {
    const { leader } = await behind();
    const stored = leader.disk.get(GROUP);
    expect(stored?.snapshot?.checksum).toBe(zlibCrc32(Buffer.concat(stored?.chunks ?? [])));
  });
});

describe('the rate', () => {
  it('of all streams together is bounded', async () => {
    const bytesPerTickMax = 30;
    const { world, leader, late } = await behind({
      streams: { outgoingMax: 4, silentTicksMax: 10, bytesPerTickMax },
    });
    const other = world.add(5);
    await world.changed([{ kind: 'addLearner', node: late.id }]);
    await world.changed([{ kind: 'addLearner', node: other.id }]);
    world.sent.length = 0;
    const ticks = 2 * ELECTION_TICKS;
    await world.tick(ticks);
    let bytes = 0;
    for (const parcel of world.sent) bytes += chunkOf(parcel)?.data.byteLength ?? 0;
    // What goes beyond is the last chunk, which leaves whole.
    expect(bytes).toBeLessThanOrEqual(bytesPerTickMax * ticks + 100);
    expect(bytes).toBeGreaterThan(bytesPerTickMax * (ticks - HEARTBEAT_TICKS) - 200);
    await world.until(() => late.app.index === leader.app.index && other.app.index === leader.app.index);
  });
});

describe('the checksum', () => {
  it('is that of zlib, however the bytes are cut', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 50 }), { maxLength: 5 }), (pieces) => {
        let checksum = 0;
        for (const piece of pieces) checksum = crc32(piece, checksum);
        expect(checksum).toBe(zlibCrc32(Buffer.concat(pieces)));
      }),
    );
  });
});
