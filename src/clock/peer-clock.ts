/**
 * Compares the speed of this node's monotonic clock with that of one other process, by round trips. It reads no clock
 * itself, and says only what is certain, whatever the network, the event loops or the disks do meanwhile.
 *
 * A round trip reads this clock (`sent`), then the peer's (`peer`), then this one again (`received`). Write A and B for
 * this clock and the peer's. When the peer was read, A stood somewhere in [sent, received], for no clock runs back. So
 * between the round trips i and j, in the order in which the peer was read, B rose by exactly peer_j - peer_i, and A by
 *
 *     at least sent_j - received_i     and     at most received_j - sent_i.
 *
 * With a limit of d: if the least that A can have risen exceeds (1 + d) times what B rose, then A certainly ran faster
 * than B by more than d; if B rose by more than (1 + d) times the most that A can have risen, certainly slower. Delays
 * make the bounds wider and the certainty later, never wrong.
 *
 * Which i? Over E = A - (1 + d) B the first condition is: E has certainly risen since i. The best i is the one whose
 * upper bound on E, received_i - (1 + d) peer_i, is the least of all: one round trip to remember, however long ago it
 * was. The same holds the other way round for the second condition.
 *
 * What is missed, and for how long: while nothing is found, sent_j - (1 + d) peer_j <= received_i - (1 + d) peer_i for all
 * i before j, so E rises by at most the durations of both round trips from one to the other. A clock that runs faster by
 * d + x is found as soon as it has gained the two at the rate x, and has gained no more by then than
 *
 *     received_i - sent_i + received_j - sent_j     and what it gains in the time between two round trips, twice.
 *
 * This bounds how far group time can outrun real time on a leader whose clock is too fast (see clock-watch.ts).
 */

export interface RoundTrip {
  /** This clock, before the question left. */
  readonly sentMillis: number;
  /** The peer's clock, between question and answer. */
  readonly peerMillis: number;
  /** This clock, after the answer came. */
  readonly receivedMillis: number;
}

/** This node's clock certainly differed from the peer's by more than the limit: it is faster, or it is slower. */
export interface Difference {
  readonly direction: 'fast' | 'slow';
  /** In parts per million; the true difference was greater. */
  readonly atLeastPpm: number;
  /** On this clock. A difference that lasts is found again before. */
  readonly forgottenMillis: number;
}

/**
 * How long a difference counts after it was found. Twice as long as it took to find it, so that one that lasts is found
 * again before it is forgotten; but a machine that was suspended for a night is not held to that for two.
 */
const REMEMBERED_MILLIS_MIN = 30_000;
const REMEMBERED_MILLIS_MAX = 600_000;

/** Readings are no finer. */
const READING_MILLIS = 0.001;

/** For the estimate: the shortest round trip of each span, for about a minute. */
const SPAN_MILLIS = 10_000;
const SPANS = 7;

export class PeerClock {
  /** The round trip since which A can least have gained, and the one since which B can. */
  #fastSince: RoundTrip | undefined;
  #slowSince: RoundTrip | undefined;
  #last: RoundTrip | undefined;
  /** Oldest first; the last one is still going on. */
  readonly #spans: { readonly beginMillis: number; best: RoundTrip }[] = [];

  /** Returns a difference that is certain now. A round trip that was overtaken by a later one is of no use. */
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
   * By how much this clock is faster than the peer's, in parts per million: the best guess over the last minute, for
   * people to look at. Undefined while it would be a guess over less than ten seconds.
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
