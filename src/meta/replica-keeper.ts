/**
 * Keeps the replicas on this node: those that the newest list of nodes places here, and others for as long as another
 * node may count on them. It creates a replica, offers it to the leader of the group, and deletes replicas that moved
 * away. The leader decides whether to accept the offer (group-mover.ts).
 *
 * Offers make it safe to delete a replica: a leader accepts a node only after the node offered itself under the
 * leader's version, and a node writes the version of an offer to disk before it sends it. A replica is deleted by
 * version v if
 *
 * 1. v is settled, is the newest version that is known here, and does not place the partition here;
 * 2. v is above every version that the replica was offered under, on disk;
 * 3. no configuration in its log, applied or not, has an epoch above v.
 *
 * docs/internals/raft.md ("Removing a replica") argues that no node counts on the replica then, and explains the
 * tombstone and its term. It remains to show that none of the three conditions can miss a promise:
 *
 * - **After a restart** group 0 may be at an older version here, because its last commits may not be known on this
 *   disk. So v may be old, and a newer version may have placed the partition here. But then the offer under it is on
 *   this disk (2), and if the replica ever counted, so is the configuration that made it a member (3).
 * - **A node that was away** during the removal learns of v when it is back, and decides then. Until then its replica
 *   asks for votes that it does not get.
 * - **Placed back here by v + 1.** If this node knows that, v is not the newest version, and the replica stays: it is
 *   offered under v + 1 and goes on from its log. If not, it is deleted by v and starts anew under v + 1, because a
 *   tombstone yields to any version above its own and to none below. No leader accepted it under v + 1 in between,
 *   because it had not offered itself.
 * - **An older list after a restart** may place the partition here: the tombstone shows that this is outdated.
 * - **Late messages** for a deleted replica are dropped. Messages to its former life mean nothing to the next one,
 *   whose term is higher.
 */
import type { MultiRaft } from '../../raft/driver/multi-raft.ts';
import type { GroupConfig, NodeId, StoredGroup } from '../../raft/types.ts';
import { groupOfPartition } from '../partition/placement.ts';
import type { ClusterPlacement } from './cluster-placement.ts';
import type { MetaState } from './cluster-state.ts';

/** The replicas of this node. */
export interface LocalReplicas {
  has(partition: number): boolean;
  /** Creates a replica. `returns` is given if it was removed before. */
  add(partition: number, returns?: { readonly tombstone: StoredGroup; readonly placement: number }): void;
  /** The replica is being removed. */
  drop(partition: number): void;
}

/** What the keeper is created with. */
export interface ReplicaKeeperInit {
  readonly nodeId: NodeId;
  readonly raft: MultiRaft;
  readonly placement: ClusterPlacement;
  readonly replicas: LocalReplicas;
  readonly isConnected: (peer: NodeId) => boolean;
  /** Offers to a node that this one holds these partitions under `version`. */
  readonly offer: (to: NodeId, version: number, partitions: readonly number[]) => void;
}

const CHECK_TICKS = 10;
/** Offers are repeated, because leaders change and messages get lost. */
const OFFER_TICKS = 50;

/** The keeper of one node. */
export class ReplicaKeeper {
  readonly #init: ReplicaKeeperInit;
  #state: MetaState | undefined;
  #ticks = 0;
  /** By partition: the version of the last offer, on disk or on its way there. */
  readonly #offered = new Map<number, number>();
  /** By partition: the version of the last offer that is certainly on disk. */
  readonly #durable = new Map<number, number>();
  readonly #tombstones = new Map<number, StoredGroup>();
  readonly #removing = new Set<number>();
  /** Offers written since the last tick. One write may contain thousands, which are sent in one frame. */
  #fresh: number[] = [];
  /** Whether nothing is left to do for `#state`. */
  #isDone = false;

  constructor(init: ReplicaKeeperInit) {
    this.#init = init;
  }

  /**
   * Takes the state of a partition that was on disk at start. Its replica was added, unless only a tombstone is left.
   */
  loaded(partition: number, stored: StoredGroup | undefined): void {
    if (stored?.removed === true) {
      this.#tombstones.set(partition, stored);
      return;
    }
    this.#offered.set(partition, stored?.placement ?? 0);
    this.#durable.set(partition, stored?.placement ?? 0);
  }

  update(state: MetaState): void {
    this.#state = state;
    this.#isDone = false;
  }

  tick(): void {
    this.#ticks += 1;
    this.#offerFresh();
    if (this.#ticks % CHECK_TICKS === 0 && !this.#isDone) this.check();
  }

  /** Compares the replicas with the placement. Must not be called within a turn of the driver. */
  check(): void {
    const state = this.#state;
    if (state === undefined) return;
    const { nodeId, placement } = this.#init;
    const offers: number[] = [];
    this.#isDone = true;
    for (let partition = 0; partition < placement.partitionCount; partition += 1) {
      const isWanted = placement.replicasOf(partition).includes(nodeId);
      const isDone = isWanted
        ? this.#hold(partition, state.version, offers)
        : this.#seeItGone(partition, state);
      if (!isDone) this.#isDone = false;
    }
    if (offers.length > 0 && this.#ticks % OFFER_TICKS === 0) this.#send(state.version, offers);
  }

  /** Creates and offers the replica if necessary. Returns true if it is a member of its group under this version. */
  #hold(partition: number, version: number, offers: number[]): boolean {
    const { nodeId, raft, replicas } = this.#init;
    if (this.#removing.has(partition)) return false;
    if (!replicas.has(partition) && !this.#make(partition, version)) return false;
    const group = groupOfPartition(partition);
    const config = raft.configOf(group);
    if (config !== undefined && isVoterUnder(config, nodeId, version)) return true;
    const offered = this.#offered.get(partition) ?? 0;
    if (offered < version) {
      this.#offered.set(partition, version);
      raft.offerGroup(group, version, () => {
        this.#durable.set(partition, version);
        this.#fresh.push(partition);
      });
    } else if (this.#durable.get(partition) === version) {
      offers.push(partition);
    }
    return false;
  }

  /** Creates the replica. Returns false if this version is not above the one that removed it. */
  #make(partition: number, version: number): boolean {
    const tombstone = this.#tombstones.get(partition);
    if (tombstone !== undefined && version <= tombstone.placement) return false;
    this.#tombstones.delete(partition);
    const returns = tombstone === undefined ? undefined : { tombstone, placement: version };
    this.#init.replicas.add(partition, returns);
    return true;
  }

  /** Removes the replica if that is safe. Returns true if there is none or it is being removed. */
  #seeItGone(partition: number, { version, settledVersion }: MetaState): boolean {
    const { raft, replicas } = this.#init;
    if (!replicas.has(partition)) return true;
    const group = groupOfPartition(partition);
    const isSettled = settledVersion === version;
    const wasOffered = (this.#offered.get(partition) ?? 0) >= version;
    if (!isSettled || wasOffered || raft.newestEpoch(group) > version) return false;
    this.#removing.add(partition);
    this.#offered.delete(partition);
    this.#durable.delete(partition);
    replicas.drop(partition);
    raft.removeGroup(group, version, (tombstone) => {
      this.#removing.delete(partition);
      this.#tombstones.set(partition, tombstone);
      this.#isDone = false;
    });
    return true;
  }

  #offerFresh(): void {
    const { version } = this.#state ?? { version: 0 };
    const fresh = this.#fresh.splice(0).filter((partition) => this.#durable.get(partition) === version);
    if (fresh.length > 0) this.#send(version, fresh);
  }

  /** Sends offers to all nodes that may lead these partitions. Nodes that do not lead ignore them. */
  #send(version: number, partitions: readonly number[]): void {
    const { nodeId, placement, isConnected, offer } = this.#init;
    const byNode = new Map<NodeId, number[]>();
    for (const partition of partitions) {
      for (const node of placement.candidatesOf(partition)) {
        if (node === nodeId || !isConnected(node)) continue;
        const some = byNode.get(node);
        if (some === undefined) byNode.set(node, [partition]);
        else some.push(partition);
      }
    }
    for (const [node, some] of byNode) offer(node, version, some);
  }
}

function isVoterUnder({ epoch, voters, outgoing }: GroupConfig, node: NodeId, version: number): boolean {
  return epoch >= version && voters.includes(node) && outgoing.length === 0;
}
