/**
 * The replicas of partitions on this node: reads them from the disk, makes them, lets go of them, and knows which of them
 * have a vote. Which ones there should be is decided in meta/; what they grant, by themselves.
 */
import { type GroupApplication, type MultiRaft } from '../../raft/driver/multi-raft.ts';
import { GroupClock } from '../../raft/driver/group-clock.ts';
import type { LogStore } from '../../raft/driver/store.ts';
import { type GroupConfig, type GroupId, NO_NODE, type NodeId, type StoredGroup } from '../../raft/types.ts';
import type { ClusterConfig } from '../config/config.ts';
import type { RuleTable } from '../limiter/rules.ts';
import type { ClusterPlacement } from '../meta/cluster-placement.ts';
import type { LocalReplicas } from '../meta/replica-keeper.ts';
import { Partition } from '../partition/partition.ts';
import { groupOfPartition } from '../partition/placement.ts';
import { restoreGroup } from './group-loader.ts';
import type { Clocks, NodeCoreInit } from './node-core-init.ts';
import { PARTITION_DEFAULTS, type PartitionOptions } from '../partition/partition-options.ts';

export interface ReplicasInit {
  readonly nodeId: NodeId;
  readonly config: ClusterConfig;
  readonly raft: MultiRaft;
  readonly placement: ClusterPlacement;
  readonly store: LogStore;
  readonly clocks: Clocks;
  /** A whole number in [0, bound). */
  readonly random: (bound: number) => number;
  /** Other bounds than usual. */
  readonly options: Partial<PartitionOptions> | undefined;
  /** The newest version of the list of nodes that is known here; undefined before the first. */
  readonly placementVersion: () => number | undefined;
  /** What group 0 wants the partitions to decide by; undefined while the file says it. */
  readonly rulesAsked: () => RuleTable | undefined;
  readonly leaderChanged: (partition: number, leader: NodeId, term: number) => void;
  readonly refusedAtCapacity: () => void;
  readonly added: (group: GroupId, app: GroupApplication) => void;
  readonly timed?: NodeCoreInit['timed'];
}

const SEED_BOUND = 2 ** 47;

export class Replicas implements LocalReplicas {
  readonly #init: ReplicasInit;
  /** Also of partitions that are moving here or have moved away. */
  readonly #all = new Map<number, Partition>();
  /** Those that have a vote: they hear from Raft who leads. */
  readonly #voting = new Map<number, Partition>();

  constructor(init: ReplicasInit) {
    this.#init = init;
  }

  get all(): ReadonlyMap<number, Partition> {
    return this.#all;
  }

  partitions(): Iterable<number> {
    return this.#all.keys();
  }

  has(partition: number): boolean {
    return this.#all.has(partition);
  }

  /** Brings back what the disk holds of a partition, if it belongs here, and returns what that was. */
  async load(partition: number): Promise<StoredGroup | undefined> {
    const { store } = this.#init;
    const group = groupOfPartition(partition);
    const stored = await store.load(group);
    // Also what has moved away: others may not know yet that this replica is not needed.
    if (stored?.removed === true || (stored === undefined && !this.#wasFoundedHere(partition))) return stored;
    const replica = this.#made(partition);
    if (stored !== undefined) await restoreGroup(store, group, stored, replica);
    this.#add(partition, replica, { stored });
    return stored;
  }

  add(partition: number, returns?: { readonly tombstone: StoredGroup; readonly placement: number }): void {
    this.#add(partition, this.#made(partition), {
      stored: returns?.tombstone,
      ...(returns !== undefined && { placement: returns.placement }),
    });
  }

  drop(partition: number): void {
    this.#all.get(partition)?.dropped();
    this.#all.delete(partition);
    this.#voting.delete(partition);
  }

  #made(partition: number): Partition {
    const { nodeId, raft, clocks, random, options, leaderChanged, refusedAtCapacity, timed } = this.#init;
    const group = groupOfPartition(partition);
    const replica = new Partition({
      partition,
      nodeId,
      clock: new GroupClock(clocks.monotonicMillis, clocks.wallMillis),
      options: { ...PARTITION_DEFAULTS, ...options },
      hashSeed: random(SEED_BOUND),
      monotonicMillis: clocks.monotonicMillis,
      wallMillis: clocks.wallMillis,
      requestProposal: () => raft.requestProposal(group),
      readIndex: (done) => raft.readIndex(group, done),
      leaderChanged,
      configChanged: () => this.revise(partition),
      refusedAtCapacity,
      ...(timed !== undefined && { timed: (timing) => timed(partition, timing) }),
    });
    const rules = this.#init.rulesAsked();
    if (rules !== undefined) replica.wantRules(rules);
    return replica;
  }

  #add(
    partition: number,
    replica: Partition,
    from: { readonly stored: StoredGroup | undefined; readonly placement?: number },
  ): void {
    const { nodeId, raft, placement, added } = this.#init;
    const group = groupOfPartition(partition);
    this.#all.set(partition, replica);
    raft.addGroup({
      group,
      // A replica that comes later learns from the others who they are.
      voters: this.#wasFoundedHere(partition) ? (placement.founded[partition] ?? []) : [],
      preferredLeader: placement.replicasOf(partition)[0] ?? nodeId,
      app: replica,
      ...from,
    });
    this.revise(partition);
    added(group, replica);
  }

  #wasFoundedHere(partition: number): boolean {
    const { nodeId, placement } = this.#init;
    return placement.founded[partition]?.includes(nodeId) === true;
  }

  /** The members of its group may be others now, or what is known of the nodes: does the replica here vote? */
  revise(partition: number): void {
    const replica = this.#all.get(partition);
    const config = this.#init.raft.configOf(groupOfPartition(partition));
    if (replica === undefined || config === undefined) return;
    if (this.#hasVote(partition, config)) this.#voting.set(partition, replica);
    else this.#voting.delete(partition);
  }

  #hasVote(partition: number, { voters, outgoing, epoch }: GroupConfig): boolean {
    const { nodeId, placement, placementVersion } = this.#init;
    if (!voters.includes(nodeId) && !outgoing.includes(nodeId)) return false;
    // Removed while it was away, perhaps: then nobody told the replica, but the nodes know that all have moved.
    const version = placementVersion();
    if (!placement.isSettled || (version !== undefined && epoch > version)) return true;
    return placement.replicasOf(partition).includes(nodeId);
  }

  /** A replica that waits for a leader may have been removed without being told; certainly not while none moves. */
  hearsOfLeaders(partition: number): boolean {
    const replica = this.#voting.get(partition);
    return replica !== undefined && (this.#init.placement.isSettled || replica.leader !== NO_NODE);
  }

  /** Every partition that should be here is, and has a leader. */
  get haveLeaders(): boolean {
    const { nodeId, placement } = this.#init;
    for (let partition = 0; partition < placement.partitionCount; partition += 1) {
      if (!placement.replicasOf(partition).includes(nodeId)) continue;
      if ((this.#voting.get(partition)?.leader ?? NO_NODE) === NO_NODE) return false;
    }
    return true;
  }

  /** A majority of the wall clocks have reached this time; undefined: nobody knows. */
  followUtc(utcMillis: number | undefined): void {
    for (const replica of this.#all.values()) replica.followUtc(utcMillis);
  }

  /** Requests that wait for a place in a log, or for their entry to be applied. */
  get waitingCount(): number {
    let count = 0;
    for (const replica of this.#all.values()) count += replica.waitingCount;
    return count;
  }

  /** The strictest of the rules in force in the partitions held here: while a change of the rules travels they differ. */
  get clockDriftPpm(): number {
    let least = Infinity;
    for (const { ruleTable } of this.#all.values())
      if (ruleTable !== undefined) least = Math.min(least, ruleTable.clockDriftPpm);
    return least === Infinity ? this.#init.config.rules.clockDriftPpm : least;
  }
}
