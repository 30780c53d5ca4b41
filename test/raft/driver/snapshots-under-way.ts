/** A follower that needs a snapshot of each group, and helpers to observe the streams to it. */
import { assert } from '../../../raft/assert.ts';
import type { GroupWrite } from '../../../raft/driver/store.ts';
import { Cluster, type ClusterOptions } from './cluster.ts';
import type { Node } from './node.ts';
import { COMPACTING, ELECTION_TICKS, GROUP, HEARTBEAT_TICKS } from './options.ts';
import { chunkOf, type Parcel } from './parcel.ts';

export interface Behind {
  readonly cluster: Cluster;
  readonly leader: Node;
  /** Needs a snapshot of each group, and is cut off. */
  readonly late: Node;
}

export async function behind({ options, ...rest }: Partial<ClusterOptions> = {}): Promise<Behind> {
  const cluster = new Cluster({ voters: 3, ...rest, options: { ...COMPACTING, ...options } });
  const late = cluster.otherThan(await cluster.elect());
  // It has applied all there is so far.
  await cluster.tick(2 * HEARTBEAT_TICKS);
  cluster.isolate(late.id);
  // For every group: another node may lead it.
  await cluster.tick(4 * ELECTION_TICKS);
  for (const group of cluster.groups) {
    await cluster.fill(60, group);
    const logStart = cluster.leaderOf(group)?.statusOf(group).logStart ?? 0;
    assert(
      logStart > late.statusOf(group).lastIndex,
      'the leader has compacted the entries that the follower needs',
    );
  }
  late.store.writes.length = 0;
  cluster.sent.length = 0;
  return { cluster, leader: await cluster.elect(GROUP), late };
}

export function isChunk(parcel: Parcel): boolean {
  return chunkOf(parcel) !== undefined;
}

/** The bytes of snapshot chunks in one write. */
export function stagedBytes({ stage }: GroupWrite): number {
  return (stage?.chunks ?? []).reduce((sum, chunk) => sum + chunk.length, 0);
}
