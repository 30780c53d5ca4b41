/**
 * Compares the speed of this node's monotonic clock with that of one other process, by round trips. Reads no clock
 * itself, and reports only what is certain; delays of the network, the event loops and the disks do not matter.
 *
 * A round trip reads this clock (`sent`), then the peer's (`peer`), then this one again (`received`). Write A and B for
 * this clock and the peer's. When the peer was read, A was somewhere in [sent, received], because no clock runs back.
 * So between the round trips i and j, in the order in which the peer was read, B rose by exactly peer_j - peer_i, and A
 * by
 *
 *     at least sent_j - received_i     and     at most received_j - sent_i.
 *
 * Let the limit be d. If the least that A can have risen exceeds (1 + d) times what B rose, A certainly ran faster than
 * B by more than d. If B rose by more than (1 + d) times the most that A can have risen, A certainly ran slower. Delays
 * make the bounds wider and the certainty later, never wrong.
 *
 * Which i to compare with: in terms of E = A - (1 + d) B the first condition says that E has certainly risen since i.
 * The best i is the one with the least upper bound on E, received_i - (1 + d) peer_i. So one round trip must be
 * remembered, however old it is. The second condition works the same way in the other direction.
 *
 * What is missed, and for how long: while nothing is found, sent_j - (1 + d) peer_j <= received_i - (1 + d) peer_i for
 * all i before j, so E rises by at most the durations of both round trips from one to the other. A clock that is faster
 * by d + x is found as soon as it has gained these two durations at the rate x, and by then it has gained at most
 *
 *     received_i - sent_i + received_j - sent_j     plus twice its gain between two round trips.
 *
 * This bounds how far group time can outrun real time on a leader whose clock is too fast (see clock-watch.ts).
 */

/** The three clock readings of one round trip, in milliseconds. */
export interface RoundTrip {
  /** This clock, before the ping left. */
  readonly sentMillis: number;
  /** The peer's clock, between ping and pong. */
  readonly peerMillis: number;
  /** This clock, after the pong arrived. */
  readonly receivedMillis: number;
}

/** A certain difference: this clock is faster or slower than the peer's by more than the limit. */
export interface Difference {
  readonly direction: 'fast' | 'slow';
  /** A lower bound of the difference, in parts per million. */
  readonly atLeastPpm: number;
  /** When the difference stops to count, on this clock. A lasting difference is found again before that. */
  readonly forgottenMillis: number;
}

/**
 * How long a difference counts after it was found: twice the time it took to find it, so that a lasting one is found
 * again before. The maximum is for machines that were suspended for a night: they should not be unfit for two.
 */
const REMEMBERED_MILLIS_MIN = 30_000;
const REMEMBERED_MILLIS_MAX = 600_000;

/** The resolution of readings. */
const READING_MILLIS = 0.001;

/** For the estimate: keep the shortest round trip of each span, for about a minute. */
const SPAN_MILLIS = 10_000;
const SPANS = 7;

/** The comparison with one process of a peer. */
export class PeerClock {
  /** The round trips to compare with: for a faster A, and for a slower A. */
  #fastSince: RoundTrip | undefined;
  #slowSince: RoundTrip | undefined;
  #last: RoundTrip | undefined;
  /** Oldest first; the last span is not over. */
  readonly #spans: { readonly beginMillis: number; best: RoundTrip }[] = [];

  /**
   * Adds a round trip and returns a difference that is now certain, if there is one. Ignores a round trip that a later
   * one has overtaken.
   */
  add(trip: RoundTrip, limitPpm: number): Difference | undefined {
    if (this.#last !== undefined && trip.peerMillis <= this.#last.peerMillis) return undefined;
    this.#last = trip;
    this.#gather(trip);
    const limit = 1 + limitPpm / 1e6;
    return this.#findFast(trip, limit) ?? this.#findSlow(trip, limit);
  }

  #findFast(trip: RoundTrip, limit: number): Difference | undefined {
    const since = (this.#fastSince ??= trip);
    const peerMillis = trip.peerMillis - since.peerMillis;
    const ownMillisMin = trip.sentMillis - since.receivedMillis;
    const isFound = ownMillisMin > limit * peerMillis + READING_MILLIS;
    const isBetter = trip.receivedMillis - since.receivedMillis < limit * peerMillis;
    if (isFound || isBetter) this.#fastSince = trip;
    return isFound ? difference('fast', ownMillisMin / peerMillis, since, trip) : undefined;
  }

  #findSlow(trip: RoundTrip, limit: number): Difference | undefined {
    const since = (this.#slowSince ??= trip);
    const peerMillis = trip.peerMillis - since.peerMillis;
    const ownMillisMax = trip.receivedMillis - since.sentMillis;
    const isFound = peerMillis > limit * ownMillisMax + READING_MILLIS;
    const isBetter = peerMillis < limit * (trip.sentMillis - since.sentMillis);
    if (isFound || isBetter) this.#slowSince = trip;
    return isFound ? difference('slow', peerMillis / ownMillisMax, since, trip) : undefined;
  }

  #gather(trip: RoundTrip): void {
    const current = this.#spans.at(-1);
    if (current === undefined || trip.peerMillis - current.beginMillis >= SPAN_MILLIS) {
      this.#spans.push({ beginMillis: trip.peerMillis, best: trip });
      if (this.#spans.length > SPANS) this.#spans.shift();
    } else if (durationOf(trip) < durationOf(current.best)) current.best = trip;
  }

  /**
   * Estimates by how much this clock is faster than the peer's, in parts per million, over the last minute. For display
   * only. Undefined during the first ten seconds.
   */
  get estimatePpm(): number | undefined {
    const first = this.#spans[0];
    const last = this.#spans.at(-1);
    const peerMillis = (last?.best.peerMillis ?? 0) - (first?.best.peerMillis ?? 0);
    if (first === undefined || last === undefined || peerMillis < SPAN_MILLIS) return undefined;
    return ((middleOf(last.best) - middleOf(first.best)) / peerMillis - 1) * 1e6;
  }
}

function difference(
  direction: Difference['direction'],
  ratio: number,
  since: RoundTrip,
  trip: RoundTrip,
): Difference {
  const tookMillis = trip.receivedMillis - since.sentMillis;
  const countsMillis = Math.min(REMEMBERED_MILLIS_MAX, Math.max(REMEMBERED_MILLIS_MIN, 2 * tookMillis));
  return {
    direction,
    atLeastPpm: (ratio - 1) * 1e6,
    forgottenMillis: trip.receivedMillis + countsMillis,
  };
}

function durationOf(trip: RoundTrip): number {
  return trip.receivedMillis - trip.sentMillis;
}

function middleOf(trip: RoundTrip): number {
  return (trip.sentMillis + trip.receivedMillis) / 2;
}
