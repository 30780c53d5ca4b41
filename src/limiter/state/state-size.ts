/**
 * How large a state is, by a model: what a key, a run of grants and a remembered request id take, whatever became of
 * the memory they were put into. So all replicas agree on it, to the byte, and a cap on it can be part of the decisions.
 *
 * The model errs on the large side, but for texts that are just too long for a size of blocks: those take up to a third
 * more. A block of runs has room for twice as many at most. What is held beside what is in use has a bound of its own,
 * whoever came and left: see `BlockPool`.
 */

/** Two rows, a bucket, and of two blocks the rounding and whose they are. The name's bytes come on top. */
export const KEY_BYTES = 96;
/** Eight bytes, twice. */
export const RUN_BYTES = 16;
/** A row, a bucket, and of a block the rounding and whose it is. The bytes of its texts come on top. */
export const REQUEST_ID_BYTES = 144;

/** The record of a key: an object with two lists, a row and a bucket. Its texts come on top. */
export const CUSTOMER_BYTES = 320;
/** One limit of its own, in such a record. Its rule's id comes on top. */
export const OVERRIDE_BYTES = 96;

/** The most keys or request ids of one state: far from where any index or address would overflow. */
export const ENTRIES_MAX = 1 << 25;

/**
 * How far above the cap the runs of known keys may go: an eighth. So users that are known are still served when there
 * is no room for others, and what they take is bounded too.
 */
const RESERVE_PARTS = 8;

/** How much else there is for what is remembered. `full`: for what is known already. `exhausted`: for nothing more. */
export type Room = 'free' | 'full' | 'exhausted';

/** How many of each are remembered. */
export interface StateCounts {
  /** Keys with recorded grants, over all rules. */
  readonly keys: number;
  /** Recorded runs: grants of one key in one millisecond count once. */
  readonly grants: number;
  readonly requestIds: number;
  /** Records: what operators said of a key. */
  readonly customers: number;
}

export class StateSize {
  keys = 0;
  keyTextBytes = 0;
  runs = 0;
  /** Of meters, beside runs and what `KEY_BYTES` covers. */
  meterBytes = 0;
  requestIds = 0;
  requestIdTextBytes = 0;
  /** Records of keys, and all that they take. */
  customers = 0;
  customerBytes = 0;

  /** Is there room for `bytes` more, under a cap? `isNew`: for a key or a request id that is not there yet. */
  hasRoom(bytes: number, isNew: boolean, capBytes: number): boolean {
    // What does not grow may go on, however the cap was changed.
    if (bytes === 0) return true;
    if (!isNew) return this.bytes + bytes <= capBytes + Math.floor(capBytes / RESERVE_PARTS);
    return this.bytes + bytes <= capBytes && this.#hasPlaces;
  }

  /** Is there room for `bytes` more of what operators say? Requests alone never fill it: as much again as they may go above the cap. */
  hasRoomForOperators(bytes: number, capBytes: number): boolean {
    const isFree = this.bytes + bytes <= capBytes + 2 * Math.floor(capBytes / RESERVE_PARTS);
    return isFree && this.customers < ENTRIES_MAX;
  }

  get #hasPlaces(): boolean {
    return this.keys < ENTRIES_MAX && this.requestIds < ENTRIES_MAX && this.customers < ENTRIES_MAX;
  }

  get counts(): StateCounts {
    const { keys, runs: grants, requestIds, customers } = this;
    return { keys, grants, requestIds, customers };
  }

  get bytes(): number {
    return (
      this.keys * KEY_BYTES +
      this.keyTextBytes +
      this.runs * RUN_BYTES +
      this.meterBytes +
      this.requestIds * REQUEST_ID_BYTES +
      this.requestIdTextBytes +
      this.customerBytes
    );
  }
}
