/**
 * The clocks that a node hands to its rooms. No room reads a clock of the machine itself, so the simulator can run them
 * all on virtual time. All times are milliseconds.
 */

/** A clock that never runs back. Its origin has no meaning; it may have fractions of a millisecond. */
export interface MonotonicClock {
  readonly monotonicMillis: () => number;
}

/** The monotonic clock, and when requests arrived on it. */
export interface ArrivalClock extends MonotonicClock {
  /** A lower bound for the arrival of what is handled now: the node may have been paused before it read its sockets. */
  readonly listenerMillis: () => number;
}

/** The clocks of one machine. */
export interface Clocks extends MonotonicClock {
  /**
   * Wall clock, since 1970. It starts group time, bounds timestamps in requests, and appears in headers. Grants and
   * denials never depend on it.
   */
  readonly wallMillis: () => number;
}
