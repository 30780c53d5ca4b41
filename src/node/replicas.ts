/**
 * Manages the replicas on this node: loads, creates and drops them, and knows which of them have a vote and which
 * rules they have. src/meta decides which replicas should exist.
 */
import type { MultiRaft } from '../../raft/driver/multi-raft.ts';
import { GroupClock } from '../../raft/driver/group-clock.ts';
import type { LogStore } from '../../raft/driver/store.ts';
import { type GroupConfig, type GroupId, NO_NODE, type NodeId, type StoredGroup } from '../../raft/types.ts';
import type { ClusterConfig } from '../config/config.ts';
import type { RuleTable } from '../limiter/rules.ts';
import type { ClusterPlacement } from '../meta/cluster-placement.ts';
import type { LocalReplicas } from '../meta/replica-keeper.ts';
import { Partition } from '../partition/partition.ts';
import { groupOfPartition } from '../partition/placement.ts';
import type { Clocks } from '../api/clocks.ts';
import type { NodeCoreInit } from './node-core-init.ts';
import { PARTITION_DEFAULTS, type PartitionOptions } from '../partition/partition-options.ts';
import type { GroupApplication } from '../../raft/driver/group-application.ts';
import { assert } from '../../raft/assert.ts';

/** What `Replicas` needs. */
export interface ReplicasInit {
  readonly nodeId: NodeId;
  readonly config: ClusterConfig;
  readonly raft: MultiRaft;
  readonly placement: ClusterPlacement;
  readonly store: LogStore;
  readonly clocks: Clocks;
  /** A random integer in [0, bound). */
  readonly random: (bound: number) => number;
  /** Options that differ from the defaults. */
  readonly options: Partial<PartitionOptions> | undefined;
  /** Version of the newest list of nodes known here; undefined before the first. */
  readonly placementVersion: () => number | undefined;
  /** The rules in group 0, which partitions should take over; undefined while only the file has rules. */
  readonly rulesAsked: () => RuleTable | undefined;
  readonly leaderChanged: (partition: number, leader: NodeId, term: number) => void;
  readonly refusedAtCapacity: () => void;
  readonly added: (group: GroupId, app: GroupApplication) => void;
  readonly timed?: NodeCoreInit['timed'];
}

const SEED_BOUND = 2 ** 47;

/** The replicas of one node. */
export class Replicas implements LocalReplicas {
  readonly #init: ReplicasInit;
  /** All replicas, including those of partitions that are moving here or have moved away. */
  readonly #all = new Map<number, Partition>();
  /** The replicas with a vote; they learn from Raft who leads. */
  readonly #voting = new Map<number, Partition>();

  constructor(init: ReplicasInit) {
    this.#init = init;
  }

  /** All replicas by partition. */
  get all(): ReadonlyMap<number, Partition> {
    return this.#all;
  }

  partitions(): Iterable<number> {
    return this.#all.keys();
  }

  has(partition: number): boolean {
    return this.#all.has(partition);
  }

  /** Loads a partition from disk if it belongs here, and returns what the disk holds. */
  async load(partition: number): Promise<StoredGroup | undefined> {
    const { store } = this.#init;
    const group = groupOfPartition(partition);
    const stored = await store.load(group);
    // A replica that has moved away is loaded as well, as other nodes may not know yet that they can do without it.
    if (stored?.removed === true || (stored === undefined && !this.#wasFoundedHere(partition))) return stored;
    const replica = this.#made(partition);
    if (stored !== undefined) await restoreGroup(store, group, stored, replica);
    this.#add(partition, replica, { stored });
    return stored;
  }

  /** Creates a replica. @param returns the tombstone, if a replica of the partition was here before */
  add(partition: number, returns?: { readonly tombstone: StoredGroup; readonly placement: number }): void {
    this.#add(partition, this.#made(partition), {
      stored: returns?.tombstone,
      ...(returns !== undefined && { placement: returns.placement }),
    });
  }

  /** Drops a replica. */
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
      // A later replica learns the voters from the others.
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

  /**
   * Call when the members of its group, or the known list of nodes, may have changed: checks whether the replica
   * has a vote.
   */
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
    // The node may have been removed while it was away. The replica was not notified then, but the nodes know that
    // everything has moved.
    const version = placementVersion();
    if (!placement.isSettled || (version !== undefined && epoch > version)) return true;
    return placement.replicasOf(partition).includes(nodeId);
  }

  /**
   * Whether a replica will learn who leads. While partitions move, a replica without a leader may have been removed
   * without notice.
   */
  hearsOfLeaders(partition: number): boolean {
    const replica = this.#voting.get(partition);
    return replica !== undefined && (this.#init.placement.isSettled || replica.leader !== NO_NODE);
  }

  /** Every partition that should be here exists and has a leader. */
  get haveLeaders(): boolean {
    const { nodeId, placement } = this.#init;
    for (let partition = 0; partition < placement.partitionCount; partition += 1) {
      if (!placement.replicasOf(partition).includes(nodeId)) continue;
      if ((this.#voting.get(partition)?.leader ?? NO_NODE) === NO_NODE) return false;
    }
    return true;
  }

  /** A majority of the wall clocks has reached this time; undefined: unknown. */
  followUtc(utcMillis: number | undefined): void {
    for (const replica of this.#all.values()) replica.followUtc(utcMillis);
  }

  /** Requests that wait for a place in a log, or for their entry to be applied. */
  get waitingCount(): number {
    let count = 0;
    for (const replica of this.#all.values()) count += replica.waitingCount;
    return count;
  }

  /** The strictest drift bound in the partitions on this node; they differ while a change of the rules spreads. */
  get clockDriftPpm(): number {
    let least = Infinity;
    for (const { ruleTable } of this.#all.values())
      if (ruleTable !== undefined) least = Math.min(least, ruleTable.clockDriftPpm);
    return least === Infinity ? this.#init.config.rules.clockDriftPpm : least;
  }
}

/**
 * Restores the stored snapshot of a group into `app`, chunk by chunk, so that the event loop is not blocked. Nothing
 * may be written meanwhile.
 *
 * @throws the error of the disk if a chunk cannot be read, or that of `app` if the snapshot is invalid
 */
export async function restoreGroup(
  store: LogStore,
  group: GroupId,
  { snapshot }: StoredGroup,
  app: GroupApplication,
): Promise<void> {
  if (snapshot === undefined) return;
  const target = app.restore(snapshot);
  for (let chunk = 0; chunk < snapshot.chunkCount; chunk += 1) {
    const data = await store.readSnapshotChunk(group, snapshot.index, chunk);
    assert(
      data !== undefined,
      'nobody replaces snapshot {} of group {} while it is read',
      snapshot.index,
      group,
    );
    target.add(data);
  }
  target.complete();
  target.install();
}

interface HoldsRules {
  readonly ruleTable: RuleTable | undefined;
}

/**
 * The rules in force, as far as these partitions know: the newest of their tables. Each partition decides by its own
 * replicated table, and while a change of the rules spreads, some have an older one.
 */
export function rulesInForce(partitions: Iterable<HoldsRules>): RuleTable | undefined {
  let newest: RuleTable | undefined;
  for (const { ruleTable } of partitions)
    if (ruleTable !== undefined && ruleTable.version > (newest?.version ?? 0)) newest = ruleTable;
  return newest;
}
