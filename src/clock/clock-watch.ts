/**
 * Compares this node's clock with those of the other nodes while it runs, by a ping to each of them once a second, and
 * says whenever the verdict changes. What follows from the verdict is not decided here.
 *
 * Why: the promise is kept in group time, which runs at the speed of the leader's monotonic clock (group-clock.ts), and
 * the system may change that speed, to set a wall clock right. Windows are widened for leaders that are faster than real
 * time by up to 6/5 of `clockDriftPpm` (rules.ts). The clocks of a majority are taken to be right within a fifth of
 * `clockDriftPpm`: so a node that is faster than that differs from those by more than `clockDriftPpm`, and finds out as soon
 * as that is certain. Until then, and until it has handed over, its leaderships gain on real time, beyond what windows
 * are widened for, at most
 *
 *     two round trips, and what the excess makes of two pauses between pings and of the hand-over (see peer-clock.ts).
 *
 * That is once: a difference that lasts is found again before it is forgotten. A node that cannot compare with a
 * majority has no such bound. It cannot lead for long without a majority of its groups' replicas; but in a cluster of
 * three of which one is down, two clocks that differ do not tell which of them is wrong.
 */
import type { NodeId } from '../../raft/types.ts';
import { encodePing, encodePong, type Ping, type Pong } from '../wire/clock-readings.ts';
import { ClockRates, type ClockVerdict } from './clock-rates.ts';
import { WallClocks } from './wall-clocks.ts';

export interface ClockWatchInit {
  readonly nodeId: NodeId;
  /** Never runs back; fractions of a millisecond. */
  readonly monotonicMillis: () => number;
  /** Milliseconds since 1970, as far as this machine knows. */
  readonly wallMillis: () => number;
  /** Random: answers meant for an earlier process of this node are none for this one. */
  readonly process: number;
  /** All nodes of the cluster. */
  readonly nodes: () => readonly NodeId[];
  /** `clockDriftPpm` of the rules in force. */
  readonly limitPpm: () => number;
  /** Sends one frame; false if it was dropped. */
  readonly send: (to: NodeId, type: 'ping' | 'pong', payload: Uint8Array) => boolean;
  /** The verdict is another one. */
  readonly judged: (verdict: ClockVerdict) => void;
}

const PING_MILLIS = 1_000;

export class ClockWatch {
  readonly #init: ClockWatchInit;
  readonly #rates = new ClockRates();
  readonly #walls = new WallClocks();
  #verdict: ClockVerdict = { fit: true };
  #nextPingMillis: number;
  /** As of the last ping. */
  #limitPpm = Infinity;

  constructor(init: ClockWatchInit) {
    this.#init = init;
    this.#nextPingMillis = init.monotonicMillis();
  }

  get verdict(): ClockVerdict {
    return this.#verdict;
  }

  /** By how much this clock seems to be faster than each peer's, in parts per million. */
  estimates(): [NodeId, number][] {
    return this.#rates.estimates();
  }

  /** See `WallClocks`: UTC that a majority of all nodes' wall clocks have reached; undefined if too few are heard. */
  get utcMillis(): number | undefined {
    const { nodeId, nodes, monotonicMillis, wallMillis } = this.#init;
    return this.#walls.utcMillis(nodes(), { nodeId, wallMillis: wallMillis() }, monotonicMillis());
  }

  /** Time passed; to be called several times a second. Returns whether the others were asked, which is once a second. */
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
    // What was found may be forgotten by now.
    this.#judge();
    return true;
  }

  receivePing(from: NodeId, ping: Ping): void {
    const { process, monotonicMillis, wallMillis, send } = this.#init;
    const { process: asker, sentMillis } = ping;
    const readings = { peerMillis: monotonicMillis(), wallMillis: wallMillis() };
    send(from, 'pong', encodePong({ asker, sentMillis, process, ...readings }));
  }

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
