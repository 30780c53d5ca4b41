/**
 * Connects the capacity watch of a node to its peers: sends how much room this node has left, and finds the
 * followers whose room matters.
 */
import { membersOf } from '../../raft/membership.ts';
import type { MultiRaft } from '../../raft/driver/multi-raft.ts';
import type { NodeId } from '../../raft/types.ts';
import type { ClusterConfig } from '../config/config.ts';
import type { MetaGroup } from '../meta/meta-group.ts';
import { CapacityWatch, type CapacityWatchInit } from '../partition/capacity-watch.ts';
import { groupOfPartition } from '../partition/placement.ts';
import { encodeRoom } from '../wire/small-frames.ts';

interface NodeCapacityInit extends Pick<CapacityWatchInit, 'partitions' | 'monotonicMillis' | 'refusing'> {
  readonly nodeId: NodeId;
  readonly config: ClusterConfig;
  readonly raft: MultiRaft;
  readonly meta: MetaGroup;
  readonly send: (to: NodeId, type: 'capacity', payload: Uint8Array) => boolean;
}

/** The capacity watch of a node. */
export function watchCapacity(init: NodeCapacityInit): CapacityWatch {
  const { nodeId, config, raft, meta, send } = init;
  return new CapacityWatch({
    partitions: init.partitions,
    monotonicMillis: init.monotonicMillis,
    refusing: init.refusing,
    followersOf(partition) {
      const group = groupOfPartition(partition);
      const config = raft.configOf(group);
      // An unreachable follower holds no more than before; it reports again when it is reachable.
      return config === undefined ? [] : membersOf(config).filter((node) => raft.isReachable(group, node));
    },
    announce(room) {
      const { nodes, leaving } = meta.state ?? { nodes: config.nodes, leaving: [] };
      const payload = encodeRoom(room);
      for (const { id } of [...nodes, ...leaving]) if (id !== nodeId) send(id, 'capacity', payload);
    },
  });
}
