/**
 * Which nodes should hold which group: partitions as group 0 says, and by the ring until that is known; group 0 on the nodes
 * with the lowest ids that share least of hosts and zones, as learners on the others, for all of them need to know.
 */
import type { GroupId, NodeId } from '../../raft/types.ts';
import type { Hash32 } from '../partition/hash.ts';
import { foundingPlacement, type PlacementTable } from '../partition/placement.ts';
import type { MetaState } from './cluster-state.ts';
import { type LabelledNode, Topology } from '../partition/topology.ts';
import { labelled } from './labels.ts';
import { decodePlacement } from './placement-text.ts';

export const META_GROUP: GroupId = 0;

/** More would make every change of the nodes slower, and survive no likelier failure. */
const META_VOTERS_MAX = 5;

export interface Members {
  readonly voters: readonly NodeId[];
  readonly learners: readonly NodeId[];
}

export function metaMembers(nodes: readonly LabelledNode[]): Members {
  const topology = new Topology(nodes);
  // An even number of voters survives no more failures than one less.
  const count = Math.min(META_VOTERS_MAX, nodes.length - ((nodes.length + 1) % 2));
  const voters = topology.apart(count);
  return { voters, learners: topology.nodes.filter((node) => !voters.includes(node)) };
}

/** Of nodes of which no more is known. */
export function unlabelled(nodes: readonly NodeId[]): LabelledNode[] {
  return nodes.map((id) => ({ id }));
}

export class ClusterPlacement {
  readonly partitionCount: number;
  /** Where the partitions were when the cluster was created. */
  readonly founded: PlacementTable;
  readonly #replicas: number;
  #nodes: readonly NodeId[];
  #metaMembers: Members;
  #leaving: readonly NodeId[] = [];
  #wanted: PlacementTable;
  /** What `#wanted` was read from: most updates only tell that groups have moved. */
  #wantedText: string | undefined;
  /** Where the partitions were when all had moved last; undefined while that is where they should be. */
  #before: PlacementTable | undefined;

  constructor(founders: readonly NodeId[], partitionCount: number, replicas: number, hash: Hash32) {
    this.partitionCount = partitionCount;
    this.#replicas = replicas;
    this.#nodes = founders;
    this.#metaMembers = metaMembers(unlabelled(founders));
    this.founded = foundingPlacement(founders, partitionCount, replicas, hash);
    this.#wanted = this.founded;
  }

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

  /** All partitions are where they should be, as far as is known here. */
  get isSettled(): boolean {
    return this.#before === undefined;
  }

  /**
   * The nodes that hold the partition; the first one should lead it.
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
   * Whom to ask for a partition, likeliest first. While it moves, the group may be where it was, where it should be,
   * or, after several changes, anywhere.
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
      // Who leaves must hear where its partitions are to go: it may be leading them.
      return { voters, learners: [...learners, ...this.#leaving] };
    }
    return { voters: this.replicasOf(group - 1), learners: [] };
  }
}
