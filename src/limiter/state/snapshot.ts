/** A snapshot as whoever sends it and whoever takes it in see it. Types only. */

/** The state as of the moment it was asked for, chunk by chunk, each of which is a small piece of work. */
export interface StateSnapshot {
  /** The next chunk, or undefined at the end. */
  next(): Uint8Array | undefined;
  /** Nobody wants the rest: it need not be kept as it was. */
  abandon(): void;
}

/** A state that is built beside the present one, from the chunks of a snapshot. */
export interface StateRestore {
  /** The next chunk. @throws InvalidSnapshotError */
  add(chunk: Uint8Array): void;
  /** All chunks were added. @throws InvalidSnapshotError if they are not one whole, sound snapshot */
  complete(): void;
  /** Takes the place of the present state. Only after `complete`. */
  install(): void;
}
