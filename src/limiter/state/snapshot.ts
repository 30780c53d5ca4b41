/** The interfaces for sending and receiving a snapshot. Types only. */

/** The state as it was when the snapshot was requested, in chunks. Each chunk is a small amount of work. */
export interface StateSnapshot {
  /** The next chunk, or undefined at the end. */
  next(): Uint8Array | undefined;
  /** Nobody needs the rest, so the old state need not be preserved. */
  abandon(): void;
}

/** A state that is built from the chunks of a snapshot, next to the present one. */
export interface StateRestore {
  /** Adds the next chunk. @throws InvalidSnapshotError */
  add(chunk: Uint8Array): void;
  /** Call it after the last chunk. @throws InvalidSnapshotError if the chunks are not one complete, valid snapshot */
  complete(): void;
  /** Replaces the present state. Only after `complete`. */
  install(): void;
}
