/**
 * Makes a node refuse requests before its memory runs out. It adds up what the partitions remember, reports to the
 * other nodes when this one is full, and reports to each partition how much room its replicas have. A leader then
 * accepts only as many new users and request ids as its smallest replica can hold. It also gives each partition its
 * turn to search for idle items; it frees nothing itself.
 */
import type { MonotonicClock } from '../api/clocks.ts';
import type { NodeId } from '../../raft/types.ts';
import type { Room } from '../limiter/state/state-size.ts';
import { lesser, NodeBudget, PeerRooms } from './node-budget.ts';

interface Replica {
  readonly stateBytes: number;
  limitRoom(room: Room): void;
  /** See `Housekeeping.check`. */
  readonly housekeeping: { check(visitsMax: number): number };
}

/** The dependencies of a `CapacityWatch`. */
export interface CapacityWatchInit extends MonotonicClock {
  readonly partitions: ReadonlyMap<number, Replica>;
  /** The other nodes that replicate a partition led by this node; none if this node does not lead it. */
  readonly followersOf: (partition: number) => Iterable<NodeId>;
  /** Reports this node's room to every other node. */
  readonly announce: (room: Room) => void;
  /** Called when this node begins to refuse requests at capacity, and when it has not refused any for a while. */
  readonly refusing?: ((isRefusing: boolean, report: CapacityReport) => void) | undefined;
}

/** How much this node remembers, how much it may remember, and how many requests it has refused. */
export interface CapacityReport {
  readonly stateBytes: number;
  readonly stateBytesMax: number;
  readonly room: Room;
  /** Requests refused for lack of room, here or at a peer, since this node started. */
  readonly refused: number;
}

/** The interval of checks. A flood fills a few megabytes in that time. */
const CHECK_MILLIS = 100;
/** Items visited per check, all partitions together: about a millisecond of work. */
export const IDLE_CHECKS = 4_096;
/** A report is repeated at this interval, for nodes that missed it. */
const REPORT_MILLIS = 1_000;
/** Without a refusal for this long, the node no longer counts as refusing. */
const REFUSING_MILLIS = 10_000;

/** The capacity of one node. */
export class CapacityWatch {
  readonly #init: CapacityWatchInit;
  readonly #budget = new NodeBudget();
  readonly #peers = new PeerRooms();
  #checksAtMillis = -Infinity;
  #reportsAtMillis = -Infinity;
  /** At least one partition was limited. */
  #hasLimited = false;
  #refusedAtMillis = -Infinity;
  #isRefusing = false;
  #refused = 0;
  #isShortOfHeap = false;
  /** The index of the partition that searched for idle items last. */
  #nextTurn = 0;
  /** The room reported last. */
  #room: Room = 'free';

  constructor(init: CapacityWatchInit) {
    this.#init = init;
  }

  /** Sets how much all partitions together may remember, in bytes by the model of `StateSize`. */
  limit(stateBytesMax: number): void {
    this.#budget.limit(stateBytesMax);
    this.#checksAtMillis = -Infinity;
  }

  get report(): CapacityReport {
    const { bytesMax: stateBytesMax } = this.#budget;
    return { stateBytes: this.#stateBytes(), stateBytesMax, room: this.#room, refused: this.#refused };
  }

  /** The process itself is short of heap, or no longer is. */
  shortOfHeap(isShort: boolean): void {
    this.#isShortOfHeap = isShort;
    this.#checksAtMillis = -Infinity;
  }

  /** A peer has reported its room. */
  heard(from: NodeId, room: Room): void {
    this.#peers.heard(from, room, this.#init.monotonicMillis());
    this.#checksAtMillis = -Infinity;
  }

  refusedOne(): void {
    this.#refused += 1;
    this.#refusedAtMillis = this.#init.monotonicMillis();
  }

  tick(): void {
    const now = this.#init.monotonicMillis();
    if (now < this.#checksAtMillis) return;
    this.#checksAtMillis = now + CHECK_MILLIS;
    const before = this.#room;
    const room = lesser(this.#budget.update(this.#stateBytes()), this.#isShortOfHeap ? 'full' : 'free');
    this.#room = room;
    if (room !== before || (room !== 'free' && now >= this.#reportsAtMillis)) {
      this.#reportsAtMillis = now + REPORT_MILLIS;
      this.#init.announce(room);
    }
    this.#limitPartitions(room, this.#peers.isAnyShort(now));
    this.#noteRefusing(now);
    this.#searchIdle();
  }

  /**
   * Continues after the partition where it stopped, so that one with many keys does not keep the others from their
   * turn.
   */
  #searchIdle(): void {
    const replicas = [...this.#init.partitions.values()];
    let left = IDLE_CHECKS;
    for (let turns = 0; turns < replicas.length && left > 0; turns += 1) {
      this.#nextTurn = (this.#nextTurn + 1) % replicas.length;
      left -= replicas[this.#nextTurn]!.housekeeping.check(left);
    }
  }

  #stateBytes(): number {
    let bytes = 0;
    for (const { stateBytes } of this.#init.partitions.values()) bytes += stateBytes;
    return bytes;
  }

  #limitPartitions(own: Room, isAnyPeerShort: boolean): void {
    const isAnyShort = own !== 'free' || isAnyPeerShort;
    if (!isAnyShort && !this.#hasLimited) return;
    this.#hasLimited = isAnyShort;
    for (const [partition, replica] of this.#init.partitions) {
      replica.limitRoom(lesser(own, this.#peers.leastOf(this.#init.followersOf(partition))));
    }
  }

  #noteRefusing(now: number): void {
    const isRefusing = now - this.#refusedAtMillis < REFUSING_MILLIS;
    if (isRefusing === this.#isRefusing) return;
    this.#isRefusing = isRefusing;
    this.#init.refusing?.(isRefusing, this.report);
  }
}
