/**
 * The size of a state by a model: fixed numbers of bytes per key, run of grants and remembered request id, independent
 * of the actual memory layout. So all replicas agree on it to the byte, and decisions may depend on a cap on it.
 *
 * The model errs on the large side, except for texts just too long for a block size, which take up to a third more. A
 * block of runs may be up to twice as large as needed. Memory that is held but unused is bounded separately: see
 * `BlockPool`.
 */

/**
 * The bytes that a key costs with any meter, without its name: two rows, a bucket of the index, and rounding and owners of
 * two blocks.
 */
export const KEY_BYTES = 96;
/** The bytes of one run of grants in a log: eight, doubled because a block may have twice the room it needs. */
export const RUN_BYTES = 16;
/** The bytes of a remembered request id, without its texts: a row, a bucket, and rounding and owner of a block. */
export const REQUEST_ID_BYTES = 144;

/** The bytes of a customer record, without its texts: an object with two lists, a row and a bucket. */
export const CUSTOMER_BYTES = 320;
/** The bytes of one override in such a record, without its rule id. */
export const OVERRIDE_BYTES = 96;

/** The maximum number of keys or request ids of one state, far below where an index or address would overflow. */
export const ENTRIES_MAX = 1 << 25;

/**
 * An eighth: how far above the cap the runs of known keys may go. So known users are still served when there is no room
 * for new ones, and what they take is bounded as well.
 */
const RESERVE_PARTS = 8;

/**
 * How much room there is outside this state. `full`: only for keys and ids that are known. `exhausted`: for nothing
 * more.
 */
export type Room = 'free' | 'full' | 'exhausted';

/** How many items are remembered. */
export interface StateCounts {
  /** Keys with recorded grants, over all rules. */
  readonly keys: number;
  /** Recorded runs: all grants of one key in one millisecond count once. */
  readonly grants: number;
  readonly requestIds: number;
  /** Customer records. */
  readonly customers: number;
}

/** The running totals of one state. */
export class StateSize {
  keys = 0;
  keyTextBytes = 0;
  runs = 0;
  /** Bytes of meters, beyond runs and what `KEY_BYTES` covers. */
  meterBytes = 0;
  requestIds = 0;
  requestIdTextBytes = 0;
  /** Customer records, and the bytes of all of them. */
  customers = 0;
  customerBytes = 0;

  /** Is there room for `bytes` more under the cap? `isNew`: for a key or a request id that is not known yet. */
  hasRoom(bytes: number, isNew: boolean, capBytes: number): boolean {
    // A grant that takes no memory is always possible, even if the cap was lowered.
    if (bytes === 0) return true;
    if (!isNew) return this.bytes + bytes <= capBytes + Math.floor(capBytes / RESERVE_PARTS);
    return this.bytes + bytes <= capBytes && this.#hasPlaces;
  }

  /**
   * Is there room for `bytes` more of customer records? Requests alone never fill this room: they may go an
   * eighth above the cap, records of operators two eighths.
   */
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
