/**
 * Random histories of the real driver: several groups on one disk per node, slow writes that overlap with messages,
 * snapshots taken and streamed all the time, crashes with a write lost or kept. Replicas must agree wherever they
 * were at the same index, what was applied anywhere is never lost, and in the end everything moves again.
 */
import { describe, expect, it } from 'vitest';
import { chunkReads, Cluster } from './cluster.ts';
import { eachSeed, seeded, someSeeds } from '../seeded.ts';

/** Does a link lose everything? */
type Cut = (from: number, to: number) => boolean;
const NO_CUT: Cut = () => false;

async function run(seed: number, steps: number): Promise<Cluster> {
  const random = seeded(seed);
  const cluster = new Cluster({
    voters: random(3) === 0 ? 5 : 3,
    groups: 1 + random(3),
    seed,
    options: {
      raft: {
        heartbeatTicks: 1,
        electionTicks: 5,
        appendBytesMax: 100 + random(400),
        inflight: { messagesMax: 1 + random(8), bytesMax: 4_000 },
        uncommittedBytesMax: 4_000,
      },
      snapshotEveryBytes: 200 + random(800),
      keepLogBytes: random(300),
      snapshotWriteBytesMax: 50 + random(400),
      writeBytesMax: random(2) === 0 ? 1 << 20 : 1 + random(3_000),
      applyBytesMax: 40 + random(400),
      streams: { outgoingMax: 1 + random(3), silentTicksMax: 3 + random(10) },
      balanceTicks: random(2) === 0 ? 1_000_000 : 20,
    },
  });
  const lossPercent = random(15);
  const repeatPercent = random(10);
  const reorderPercent = random(3) === 0 ? random(40) : 0;
  const syncPercent = 2 + random(40);
  const faultPerMille = random(50);
  let cut = NO_CUT;
  let proposals = 0;
  const pick = <T>(from: readonly T[]): T | undefined => from[random(Math.max(1, from.length))];
  for (let step = 0; step < steps; step += 1) {
    await chunkReads();
    cluster.now += random(4);
    const node = pick(cluster.up);
    if (random(100) < 30) node?.raft.tick();
    // Turns come soon, writes when the disk likes.
    for (const each of cluster.up) {
      if (each.hasTurn && random(100) < 70) each.turn();
      if (each.isWriting && random(100) < syncPercent) each.sync();
    }
    for (let count = cluster.up.length * 2; count > 0 && cluster.queue.length > 0; count -= 1) {
      const at = random(100) < reorderPercent ? random(cluster.queue.length) : 0;
      const [parcel] = cluster.queue.splice(at, 1);
      if (parcel === undefined || cut(parcel.from, parcel.to) || random(100) < lossPercent) continue;
      cluster.deliver(parcel);
      if (random(100) < repeatPercent) cluster.queue.push(parcel);
    }
    if (random(100) < 25) {
      const group = 1 + random(cluster.groups.length);
      proposals += 1;
      cluster.leaderOf(group)?.propose(`p${proposals}${'x'.repeat(random(60))}`, group);
    }
    if (random(1_000) < faultPerMille) {
      const target = cluster.node(1 + random(cluster.nodes.size));
      switch (random(5)) {
        case 0:
          if (target.isUp) {
            target.crash(random(2) === 0 ? 'lost' : 'kept');
            if (random(2) === 0) for (const other of cluster.up) other.raft.peerLost(target.id);
          }
          break;
        case 1:
          cut = (from, to) => (from === target.id) !== (to === target.id);
          break;
        case 2:
          cut = (from) => from === target.id;
          break;
        case 3:
          if (target.isUp) pick(cluster.up)?.raft.peerLost(target.id);
          break;
        default:
          cut = NO_CUT;
      }
    }
    if (random(100) < 4) {
      const down = pick([...cluster.nodes.values()].filter(({ isUp }) => !isUp));
      down?.start();
    }
    cluster.checkLeaders();
  }
  return cluster;
}

/** All faults end: every group gets a leader, and everything proposed then is applied everywhere. */
async function expectProgress(cluster: Cluster): Promise<void> {
  const before = new Map(cluster.groups.map((group) => [group, cluster.agreement.appliedMax(group)]));
  for (const node of cluster.nodes.values()) if (!node.isUp) node.start();
  await cluster.tick(60);
  for (const group of cluster.groups) {
    const leader = cluster.leaderOf(group);
    if (leader === undefined) throw new Error(`group ${group} has no leader`);
    leader.propose('after all', group);
  }
  await cluster.tick(60);
  for (const group of cluster.groups) {
    const { index } = cluster.leaderOf(group)?.appOf(group) ?? { index: 0 };
    expect(index).toBeGreaterThan(before.get(group) ?? 0);
    for (const node of cluster.nodes.values()) {
      expect(node.fatals).toEqual([]);
      expect({ node: node.id, group, index: node.appOf(group).index }).toEqual({
        node: node.id,
        group,
        index,
      });
    }
  }
}

describe('random histories of the driver', () => {
  it('replicas agree, nothing applied is lost, and it ends in progress', async () => {
    await eachSeed(someSeeds(80, 8), async (seed) => {
      const cluster = await run(seed, 1_500);
      await expectProgress(cluster);
    });
  });
});
