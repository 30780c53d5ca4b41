/**
 * How much a node may remember, all partitions together, and who else says that it can remember no more. Arithmetic
 * and a table: it reads no clock, asks no operating system, and tells nobody.
 */
import type { NodeId } from '../../raft/types.ts';
import type { Room } from '../limiter/state/state-size.ts';

const ROOMS = ['free', 'full', 'exhausted'] as const satisfies readonly Room[];

/** How far above its budget a node still serves known users: an eighth. As in `StateSize`. */
const RESERVE = 1 / 8;
/** A level ends this far below where it began, so that a node at the edge does not say something new at every look. */
const HYSTERESIS = 1 / 16;
/** What a peer said counts this long: one that is gone, or cannot be heard, is not spared for ever. */
const HEARD_MILLIS_MAX = 3_000;

export interface Memory {
  /** What the heap of this process may grow to. */
  readonly heapBytesMax: number;
  /** What the machine has, or the part of it that this process may use. */
  readonly memoryBytes: number;
}

/**
 * What a node may remember if nobody says: a quarter of what its heap may grow to, or of its memory if that is less.
 * States are not on the heap, but their logs are, in proportion; and while a snapshot is read, the new state lies beside
 * the old one.
 */
export function stateBytesDefault({ heapBytesMax, memoryBytes }: Memory): number {
  return Math.floor(Math.min(heapBytesMax, memoryBytes) / 4);
}

/** What the logs of all groups may take of the heap, as far as that is not in proportion to their states: an eighth. */
const LOG_HEAP_SHARE = 1 / 8;
/** An entry of a few requests takes this many times the bytes it is counted with. */
const ENTRY_HEAP_FACTOR = 5;
/** More snapshots than this would make would cost more than they free. */
const SNAPSHOT_EVERY_BYTES_MIN = 64 << 10;

/** After how many bytes of log a group has to write a snapshot, so that the logs of `groups` of them leave room. */
export function snapshotEveryBytes({ heapBytesMax }: Memory, groups: number, most: number): number {
  const share = (heapBytesMax * LOG_HEAP_SHARE) / ENTRY_HEAP_FACTOR / Math.max(1, groups);
  return Math.floor(Math.min(most, Math.max(SNAPSHOT_EVERY_BYTES_MIN, share)));
}

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

  /** The states take this much now. */
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

/** What peers said of themselves. */
export class PeerRooms {
  readonly #heard = new Map<NodeId, { readonly room: Room; readonly atMillis: number }>();

  heard(from: NodeId, room: Room, nowMillis: number): void {
    if (room === 'free') this.#heard.delete(from);
    else this.#heard.set(from, { room, atMillis: nowMillis });
  }

  /** Forgets what was said too long ago, and returns whether anybody is short of room. */
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

export function lesser(a: Room, b: Room): Room {
  return ROOMS.indexOf(a) >= ROOMS.indexOf(b) ? a : b;
}
