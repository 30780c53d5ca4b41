/**
 * Sees to it that a node refuses before its memory is gone: adds up what its partitions remember, tells the other
 * nodes when there is no more room here, and tells each partition how much room there is wherever it is kept. A leader
 * then takes no more users and request ids than the smallest of its replicas can hold. It gives each partition its turn to
 * look for what is idle, and frees nothing itself.
 */
import type { NodeId } from '../../raft/types.ts';
import type { Room } from '../limiter/state/state-size.ts';
import { lesser, NodeBudget, PeerRooms } from './node-budget.ts';

interface Replica {
  readonly stateBytes: number;
  limitRoom(room: Room): void;
  /** See `Housekeeping.look`. */
  readonly housekeeping: { look(looksMax: number): number };
}

export interface CapacityWatchInit {
  readonly partitions: ReadonlyMap<number, Replica>;
  readonly monotonicMillis: () => number;
  /** The nodes that keep a partition and take what this one puts into its log; none if it does not lead it. */
  readonly followersOf: (partition: number) => Iterable<NodeId>;
  /** Tells every other node how much room there is here. */
  readonly tell: (room: Room) => void;
  /** Requests are refused at capacity now, or were the last time a while ago. */
  readonly refusing?: ((isRefusing: boolean, report: CapacityReport) => void) | undefined;
}

export interface CapacityReport {
  readonly stateBytes: number;
  readonly stateBytesMax: number;
  readonly room: Room;
  /** Requests that this node refused for want of room, its own or its peers', since it started. */
  readonly refused: number;
}

/** A flood fills a few megabytes by then. */
const LOOK_MILLIS = 100;
/** Of all partitions together, each time: about a millisecond of work. */
export const IDLE_LOOKS = 4_096;
/** Who missed it hears it again. */
const TELL_MILLIS = 1_000;
/** Without a refusal for this long, the refusing has ended. */
const REFUSING_MILLIS = 10_000;

export class CapacityWatch {
  readonly #init: CapacityWatchInit;
  readonly #budget = new NodeBudget();
  readonly #peers = new PeerRooms();
  #looksAtMillis = -Infinity;
  #tellsAtMillis = -Infinity;
  /** Some partition was told of a shortage. */
  #hasLimited = false;
  #refusedAtMillis = -Infinity;
  #isRefusing = false;
  #refused = 0;
  #isShortOfHeap = false;
  /** Whose turn it is to look for what is idle, by its place among the partitions. */
  #nextTurn = 0;
  /** What was told to the others last. */
  #room: Room = 'free';

  constructor(init: CapacityWatchInit) {
    this.#init = init;
  }

  /** What all partitions together may remember, in bytes by the model of `StateSize`. */
  limit(stateBytesMax: number): void {
    this.#budget.limit(stateBytesMax);
    this.#looksAtMillis = -Infinity;
  }

  get report(): CapacityReport {
    const { bytesMax: stateBytesMax } = this.#budget;
    return { stateBytes: this.#stateBytes(), stateBytesMax, room: this.#room, refused: this.#refused };
  }

  /** The process itself is short of memory, whatever its partitions remember; or no longer. */
  shortOfHeap(isShort: boolean): void {
    this.#isShortOfHeap = isShort;
    this.#looksAtMillis = -Infinity;
  }

  /** A peer says how much room it has. */
  heard(from: NodeId, room: Room): void {
    this.#peers.heard(from, room, this.#init.monotonicMillis());
    this.#looksAtMillis = -Infinity;
  }

  refusedOne(): void {
    this.#refused += 1;
    this.#refusedAtMillis = this.#init.monotonicMillis();
  }

  tick(): void {
    const now = this.#init.monotonicMillis();
    if (now < this.#looksAtMillis) return;
    this.#looksAtMillis = now + LOOK_MILLIS;
    const before = this.#room;
    const room = lesser(this.#budget.update(this.#stateBytes()), this.#isShortOfHeap ? 'full' : 'free');
    this.#room = room;
    if (room !== before || (room !== 'free' && now >= this.#tellsAtMillis)) {
      this.#tellsAtMillis = now + TELL_MILLIS;
      this.#init.tell(room);
    }
    this.#limitPartitions(room, this.#peers.isAnyShort(now));
    this.#noteRefusing(now);
    this.#lookForIdle();
  }

  /** Goes on where it ended, so that no partition with many keys keeps the others from their turn. */
  #lookForIdle(): void {
    const replicas = [...this.#init.partitions.values()];
    let left = IDLE_LOOKS;
    for (let turns = 0; turns < replicas.length && left > 0; turns += 1) {
      this.#nextTurn = (this.#nextTurn + 1) % replicas.length;
      left -= replicas[this.#nextTurn]!.housekeeping.look(left);
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
