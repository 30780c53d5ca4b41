/**
 * Compares this node's clock with those of the other nodes by a ping to each of them once a second, and reports when
 * the verdict changes. The consequences are decided elsewhere.
 *
 * The reason: limits are enforced in group time, which runs at the speed of the leader's monotonic clock
 * (group-clock.ts), and the operating system may change that speed to correct the wall clock. Windows are widened for
 * leaders that are faster than real time by up to 6/5 of `clockDriftPpm` (rules.ts). The clocks of a majority are
 * assumed to be right within a fifth of `clockDriftPpm`. So a node that is faster than 6/5 differs from those by more
 * than `clockDriftPpm`, and detects that as soon as it is certain. Until then, and until it has handed over, its
 * leaderships gain on real time, beyond the widening of windows, at most
 *
 *     two round trips, plus what the clock gains beyond the widening during two pauses between pings and during the
 *     hand-over (see peer-clock.ts).
 *
 * This happens once: a lasting difference is found again before it is forgotten. A node that cannot compare with a
 * majority has no such bound. It cannot lead for long without a majority of its groups' replicas. But in a cluster of
 * three nodes with one down, two clocks that differ do not show which of them is wrong.
 */
import type { Clocks } from '../api/clocks.ts';
import type { NodeId } from '../../raft/types.ts';
import { encodePing, encodePong, type Ping, type Pong } from '../wire/small-frames.ts';
import { ClockRates, type ClockVerdict } from './clock-rates.ts';
import { WallClocks } from './wall-clocks.ts';

/** What the watch is created with. */
export interface ClockWatchInit extends Clocks {
  readonly nodeId: NodeId;
  /** A random number for this process, so that answers to an earlier process are ignored. */
  readonly process: number;
  /** All nodes of the cluster. */
  readonly nodes: () => readonly NodeId[];
  /** `clockDriftPpm` of the rules in force. */
  readonly limitPpm: () => number;
  /** Sends one frame; false if it was dropped. */
  readonly send: (to: NodeId, type: 'ping' | 'pong', payload: Uint8Array) => boolean;
  /** The verdict changed. */
  readonly judged: (verdict: ClockVerdict) => void;
}

const PING_MILLIS = 1_000;

/** Watches the clock of one node. */
export class ClockWatch {
  readonly #init: ClockWatchInit;
  readonly #rates = new ClockRates();
  readonly #walls = new WallClocks();
  #verdict: ClockVerdict = { fit: true };
  #nextPingMillis: number;
  /** The limit at the last ping. */
  #limitPpm = Infinity;

  constructor(init: ClockWatchInit) {
    this.#init = init;
    this.#nextPingMillis = init.monotonicMillis();
  }

  get verdict(): ClockVerdict {
    return this.#verdict;
  }

  /** Estimates by how much this clock is faster than each peer's, in parts per million. */
  estimates(): [NodeId, number][] {
    return this.#rates.estimates();
  }

  /**
   * The UTC time that a majority of all nodes' wall clocks have reached, in milliseconds; undefined if too few were
   * heard. See `WallClocks`.
   */
  get utcMillis(): number | undefined {
    const { nodeId, nodes, monotonicMillis, wallMillis } = this.#init;
    return this.#walls.utcMillis(nodes(), { nodeId, wallMillis: wallMillis() }, monotonicMillis());
  }

  /** To be called several times a second. Returns true if it sent pings, which is once a second. */
  tick(): boolean {
    const { nodeId, process, monotonicMillis, nodes, limitPpm, send } = this.#init;
    const nowMillis = monotonicMillis();
    if (nowMillis < this.#nextPingMillis) return false;
    this.#nextPingMillis = nowMillis + PING_MILLIS;
    this.#limitPpm = limitPpm();
    this.#rates.retain(nodes());
    for (const node of nodes()) {
      if (node !== nodeId) send(node, 'ping', encodePing({ process, sentMillis: monotonicMillis() }));
    }
    // A difference may have been forgotten since the last check.
    this.#judge();
    return true;
  }

  /** Answers a ping with this node's clocks. */
  receivePing(from: NodeId, ping: Ping): void {
    const { process, monotonicMillis, wallMillis, send } = this.#init;
    const { process: asker, sentMillis } = ping;
    const readings = { peerMillis: monotonicMillis(), wallMillis: wallMillis() };
    send(from, 'pong', encodePong({ asker, sentMillis, process, ...readings }));
  }

  /** Evaluates the answer to a ping. */
  receivePong(from: NodeId, pong: Pong): void {
    const { asker, sentMillis, process: peerProcess, peerMillis, wallMillis } = pong;
    const { process, monotonicMillis, nodes } = this.#init;
    const receivedMillis = monotonicMillis();
    if (asker !== process || !nodes().includes(from)) return;
    this.#walls.add(from, wallMillis, receivedMillis);
    this.#rates.add(from, peerProcess, { sentMillis, peerMillis, receivedMillis }, this.#limitPpm);
    this.#judge();
  }

  #judge(): void {
    const { nodes, monotonicMillis, judged } = this.#init;
    const verdict = this.#rates.verdict(nodes(), this.#limitPpm, monotonicMillis());
    const isSame = verdict.fit === this.#verdict.fit;
    this.#verdict = verdict;
    if (!isSame) judged(verdict);
  }
}
