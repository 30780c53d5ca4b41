/**
 * Whether this node's clock runs at the speed of the others': what is certain of each of them, put together. It
 * reads no clock and sends nothing.
 *
 * Nobody knows real time. A clock that differs from those of a majority of the nodes, all of them in the same
 * direction, is taken to be the wrong one: then either it is, or a majority is. Whoever cannot compare with a majority
 * knows nothing and goes on, as before; so does a cluster of two.
 */
import type { NodeId } from '../../raft/types.ts';
import { type Difference, PeerClock, type RoundTrip } from './peer-clock.ts';

export type ClockVerdict =
  | { readonly fit: true }
  | {
      readonly fit: false;
      readonly direction: Difference['direction'];
      /** Of a majority's clocks this one differs by more than that. */
      readonly atLeastPpm: number;
    };

const FIT: ClockVerdict = { fit: true };

interface Peer {
  readonly process: number;
  readonly clock: PeerClock;
  /** What was found last, in the time of an earlier process perhaps. */
  readonly difference: Difference | undefined;
}

export class ClockRates {
  /** By node; those of nodes that are none any more are dropped, so there are never more than nodes. */
  readonly #peers = new Map<NodeId, Peer>();

  /** `process` is a number that no other process of this node has: a new one has a clock of its own. */
  add(node: NodeId, process: number, trip: RoundTrip, limitPpm: number): void {
    const known = this.#peers.get(node);
    const clock = known?.process === process ? known.clock : new PeerClock();
    const difference = clock.add(trip, limitPpm) ?? known?.difference;
    this.#peers.set(node, { process, clock, difference });
  }

  /** Forgets all but these. */
  retain(nodes: readonly NodeId[]): void {
    for (const node of this.#peers.keys()) if (!nodes.includes(node)) this.#peers.delete(node);
  }

  /** @param nodes all nodes of the cluster, with or without this one: it is the count that decides */
  verdict(nodes: readonly NodeId[], limitPpm: number, nowMillis: number): ClockVerdict {
    const needed = Math.floor(nodes.length / 2) + 1;
    for (const direction of ['fast', 'slow'] as const) {
      const ppms: number[] = [];
      for (const node of nodes) {
        const found = this.#peers.get(node)?.difference;
        if (found?.direction !== direction || nowMillis >= found.forgottenMillis) continue;
        // The limit may have been raised since.
        if (found.atLeastPpm > limitPpm) ppms.push(found.atLeastPpm);
      }
      const atLeastPpm = ppms.sort((a, b) => b - a)[needed - 1];
      if (atLeastPpm !== undefined) return { fit: false, direction, atLeastPpm };
    }
    return FIT;
  }

  /** By how much this clock seems to be faster than each peer's, in parts per million. */
  estimates(): [NodeId, number][] {
    return [...this.#peers].flatMap(([node, { clock }]): [NodeId, number][] =>
      clock.estimatePpm === undefined ? [] : [[node, clock.estimatePpm]],
    );
  }
}
