/** Two clocks of different speed, and round trips between them of any duration. */
import type { RoundTrip } from '../../src/clock/peer-clock.ts';

export interface Clocks {
  /** The reading of this node's clock, or of the peer's, at a moment of real time. */
  readonly own: (realMillis: number) => number;
  readonly peer: (realMillis: number) => number;
}

/** Clocks that run at these speeds; their first readings do not matter. */
export function clocksAt(ownRate: number, peerRate: number): Clocks {
  return { own: (real) => 1e9 + real * ownRate, peer: (real) => 5e6 + real * peerRate };
}

/** A question at `realMillis`, read by the peer after `thereMillis`, answered after `backMillis` more. */
export function roundTrip(
  { own, peer }: Clocks,
  realMillis: number,
  thereMillis: number,
  backMillis: number,
): RoundTrip {
  return {
    sentMillis: own(realMillis),
    peerMillis: peer(realMillis + thereMillis),
    receivedMillis: own(realMillis + thereMillis + backMillis),
  };
}
