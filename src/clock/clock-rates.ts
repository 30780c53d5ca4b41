/**
 * Decides whether this node's clock runs at the same speed as the others', from what is certain about each of them.
 * Reads no clock and sends nothing.
 *
 * No node knows real time. If a clock differs from the clocks of a majority of the nodes, all in the same direction, it
 * is considered wrong: either it is, or a majority is. A node that cannot compare with a majority draws no conclusion
 * and goes on; so does a cluster of two.
 */
import type { NodeId } from '../../raft/types.ts';
import { type Difference, PeerClock, type RoundTrip } from './peer-clock.ts';

/** The result: `fit` is false if this clock is faster or slower than a majority's. */
export type ClockVerdict =
  | { readonly fit: true }
  | {
      readonly fit: false;
      readonly direction: Difference['direction'];
      /** This clock differs from the clocks of a majority by more than this, in parts per million. */
      readonly atLeastPpm: number;
    };

const FIT: ClockVerdict = { fit: true };

interface Peer {
  readonly process: number;
  readonly clock: PeerClock;
  /** The last difference that was found, perhaps with an earlier process of the peer. */
  readonly difference: Difference | undefined;
}

/** The comparisons with all other nodes. */
export class ClockRates {
  /** By node. Nodes that left the cluster are dropped. */
  readonly #peers = new Map<NodeId, Peer>();

  /** Adds a round trip to `node`. `process` identifies the peer's process: another process has another clock. */
  add(node: NodeId, process: number, trip: RoundTrip, limitPpm: number): void {
    const known = this.#peers.get(node);
    const clock = known?.process === process ? known.clock : new PeerClock();
    const difference = clock.add(trip, limitPpm) ?? known?.difference;
    this.#peers.set(node, { process, clock, difference });
  }

  /** Drops all nodes except these. */
  retain(nodes: readonly NodeId[]): void {
    for (const node of this.#peers.keys()) if (!nodes.includes(node)) this.#peers.delete(node);
  }

  /**
   * The verdict now.
   *
   * @param nodes all nodes of the cluster; their number determines the majority
   * @param nowMillis this node's monotonic clock
   */
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

  /** Estimates by how much this clock is faster than each peer's, in parts per million. */
  estimates(): [NodeId, number][] {
    return [...this.#peers].flatMap(([node, { clock }]): [NodeId, number][] =>
      clock.estimatePpm === undefined ? [] : [[node, clock.estimatePpm]],
    );
  }
}
