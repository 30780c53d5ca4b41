/**
 * How much a node may remember, over all of its partitions, and which peers have reported that they are full.
 * Arithmetic and a table: no clock, no operating system, no messages.
 */
import type { NodeId } from '../../raft/types.ts';
import type { Room } from '../limiter/state/state-size.ts';

const ROOMS = ['free', 'full', 'exhausted'] as const satisfies readonly Room[];

/** How far above its budget a node still serves known users: an eighth, as in `StateSize`. */
const RESERVE = 1 / 8;
/**
 * A level ends this fraction below where it began, so that a node at the boundary does not report a change at every
 * check.
 */
const HYSTERESIS = 1 / 16;
/** How long a peer's report counts. Without this, a peer that is gone would be spared forever. */
const HEARD_MILLIS_MAX = 3_000;

/** The memory of a process, in bytes. */
export interface Memory {
  /** The maximum size of this process's heap. */
  readonly heapBytesMax: number;
  /** The memory of the machine, or the part of it that this process may use. */
  readonly memoryBytes: number;
}

/**
 * The default for what a node may remember: a quarter of the heap limit, or of the memory if that is less. States are
 * not on the heap, but their logs are, in proportion; and while a snapshot is read, the new state exists next to the
 * old one.
 */
export function stateBytesDefault({ heapBytesMax, memoryBytes }: Memory): number {
  return Math.floor(Math.min(heapBytesMax, memoryBytes) / 4);
}

/** The fraction of the heap for the logs of all groups, as far as these are not in proportion to their states. */
const LOG_HEAP_FRACTION = 1 / 8;
/** An entry of a few requests takes this many times the bytes that it is counted with. */
const ENTRY_HEAP_FACTOR = 5;
/** Below this, snapshots would cost more than they free. */
const SNAPSHOT_EVERY_BYTES_MIN = 64 << 10;

/**
 * After how many bytes of log each of `groups` groups must write a snapshot, so that the logs together fit the heap. At
 * most `most`.
 */
export function snapshotEveryBytes({ heapBytesMax }: Memory, groups: number, most: number): number {
  const fraction = (heapBytesMax * LOG_HEAP_FRACTION) / ENTRY_HEAP_FACTOR / Math.max(1, groups);
  return Math.floor(Math.min(most, Math.max(SNAPSHOT_EVERY_BYTES_MIN, fraction)));
}

/** The budget of this node. */
export class NodeBudget {
  #bytesMax = Infinity;
  #room: Room = 'free';

  limit(bytesMax: number): void {
    this.#bytesMax = bytesMax;
  }

  get room(): Room {
    return this.#room;
  }

  get bytesMax(): number {
    return this.#bytesMax;
  }

  /** Sets the present size of all states and returns the resulting room. */
  update(stateBytes: number): Room {
    const full = this.#bytesMax;
    const exhausted = full * (1 + RESERVE);
    const isStillFull = this.#room !== 'free' && stateBytes > full * (1 - HYSTERESIS);
    const isStillExhausted = this.#room === 'exhausted' && stateBytes > exhausted * (1 - HYSTERESIS);
    if (stateBytes > exhausted || isStillExhausted) this.#room = 'exhausted';
    else if (stateBytes > full || isStillFull) this.#room = 'full';
    else this.#room = 'free';
    return this.#room;
  }
}

/** The room that peers have reported. */
export class PeerRooms {
  readonly #heard = new Map<NodeId, { readonly room: Room; readonly atMillis: number }>();

  heard(from: NodeId, room: Room, nowMillis: number): void {
    if (room === 'free') this.#heard.delete(from);
    else this.#heard.set(from, { room, atMillis: nowMillis });
  }

  /** Drops outdated reports and returns whether any peer is short of room. */
  isAnyShort(nowMillis: number): boolean {
    for (const [node, { atMillis }] of this.#heard) {
      if (nowMillis - atMillis > HEARD_MILLIS_MAX) this.#heard.delete(node);
    }
    return this.#heard.size > 0;
  }

  /** The least room of any of these nodes. */
  leastOf(nodes: Iterable<NodeId>): Room {
    let least: Room = 'free';
    for (const node of nodes) least = lesser(least, this.#heard.get(node)?.room ?? 'free');
    return least;
  }
}

/** The smaller of two rooms. */
export function lesser(a: Room, b: Room): Room {
  return ROOMS.indexOf(a) >= ROOMS.indexOf(b) ? a : b;
}
