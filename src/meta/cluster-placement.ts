/**
 * The nodes that should hold each group. Partitions are placed as group 0 says, and by the hash ring until that is
 * known. The voters of group 0 are nodes with low ids that share as few hosts and zones as possible; all other nodes
 * are its learners, because every node needs its state.
 */
import type { GroupId, NodeId } from '../../raft/types.ts';
import type { Hash32 } from '../partition/hash.ts';
import { foundingPlacement, type PlacementTable } from '../partition/placement.ts';
import type { MetaState } from './cluster-state.ts';
import { type LabelledNode, Topology } from '../partition/topology.ts';
import { labelled } from './labels.ts';
import { decodePlacement } from './placement-text.ts';

/** The id of group 0. Partition p is group p + 1. */
export const META_GROUP: GroupId = 0;

/** More voters would make every change slower without surviving more likely failures. */
const META_VOTERS_MAX = 5;

/** The members that a group should have. */
export interface Members {
  readonly voters: readonly NodeId[];
  readonly learners: readonly NodeId[];
}

/** The members of group 0 for these nodes: at most 5 voters, an odd number. */
export function metaMembers(nodes: readonly LabelledNode[]): Members {
  const topology = new Topology(nodes);
  // An even number of voters survives no more failures than one voter less.
  const count = Math.min(META_VOTERS_MAX, nodes.length - ((nodes.length + 1) % 2));
  const voters = topology.apart(count);
  return { voters, learners: topology.nodes.filter((node) => !voters.includes(node)) };
}

/** Nodes without labels, for nodes of which only the ids are known. */
export function unlabelled(nodes: readonly NodeId[]): LabelledNode[] {
  return nodes.map((id) => ({ id }));
}

/** The placement of all groups as this node knows it. */
export class ClusterPlacement {
  readonly partitionCount: number;
  /** The placement of the partitions when the cluster was created. */
  readonly founded: PlacementTable;
  readonly #replicas: number;
  #nodes: readonly NodeId[];
  #metaMembers: Members;
  #leaving: readonly NodeId[] = [];
  #wanted: PlacementTable;
  /** The text that `#wanted` was decoded from. Most updates do not change it. */
  #wantedText: string | undefined;
  /** The last settled placement; undefined while the current one is settled. */
  #before: PlacementTable | undefined;

  constructor(founders: readonly NodeId[], partitionCount: number, replicas: number, hash: Hash32) {
    this.partitionCount = partitionCount;
    this.#replicas = replicas;
    this.#nodes = founders;
    this.#metaMembers = metaMembers(unlabelled(founders));
    this.founded = foundingPlacement(founders, partitionCount, replicas, hash);
    this.#wanted = this.founded;
  }

  /** Takes over a new state of group 0. */
  update(state: MetaState): void {
    const nodes = state.nodes.map(({ id }) => id);
    if (state.placement !== this.#wantedText || nodes.join() !== this.#nodes.join())
      this.#wanted = decodePlacement(state.placement, nodes, this.#replicas);
    this.#wantedText = state.placement;
    this.#nodes = nodes;
    this.#metaMembers = metaMembers(labelled(state.nodes));
    this.#leaving = state.leaving.map(({ id }) => id);
    const isSettled = state.settledVersion === state.version;
    this.#before = isSettled
      ? undefined
      : decodePlacement(state.settledPlacement, state.settledNodes, this.#replicas);
  }

  /** Whether all partitions are where they should be, as far as this node knows. */
  get isSettled(): boolean {
    return this.#before === undefined;
  }

  /**
   * The nodes that should hold the partition; the first one should lead it.
   *
   * @throws RangeError if there is no such partition
   */
  replicasOf(partition: number): readonly NodeId[] {
    const replicas = this.#wanted[partition];
    if (replicas === undefined)
      throw new RangeError(`partition ${partition} is not in 0..${this.partitionCount - 1}`);
    return replicas;
  }

  /**
   * The nodes that may lead a partition, the likeliest first. While it moves, its group may still be at the old place,
   * be at the new one, or, after several changes, be anywhere.
   */
  candidatesOf(partition: number): readonly NodeId[] {
    const wanted = this.replicasOf(partition);
    if (this.#before === undefined) return wanted;
    return [...new Set([...wanted, ...(this.#before[partition] ?? []), ...this.#nodes, ...this.#leaving])];
  }

  /** The members that a group should have. */
  membersOf(group: GroupId): Members {
    if (group === META_GROUP) {
      const { voters, learners } = this.#metaMembers;
      // A leaving node must learn where its partitions go, because it may lead them.
      return { voters, learners: [...learners, ...this.#leaving] };
    }
    return { voters: this.replicasOf(group - 1), learners: [] };
  }
}
