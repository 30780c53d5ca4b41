/**
 * How a node takes its leave of the cluster before its process ends: it hands over what it leads, asking again until that
 * worked or is hopeless, and then tells its peers to ask it nothing more. Driven by ticks; it ends nothing itself.
 */
import type { MultiRaft } from '../../raft/driver/multi-raft.ts';
import type { NodeId } from '../../raft/types.ts';
import type { Timing } from '../config/config.ts';
import type { NodeCoreInit } from './node-core-init.ts';

export interface DepartureInit {
  readonly raft: Pick<MultiRaft, 'avoidLeading' | 'canHandOver' | 'leaderships'>;
  /** Tells the peers that this node leads nothing. */
  readonly announce: () => void;
  readonly limits: DepartureLimits;
}

/** In ticks. What is not handed over by then is left to elections. */
export interface DepartureLimits {
  readonly allMax: number;
  /** Without one leadership less. */
  readonly stuckMax: number;
  /** While nobody could take over: peers that are stopping too say so within a heartbeat. */
  readonly aloneMax: number;
}

/** So long a node that stops looks for successors. */
const HAND_OVER_MILLIS_MAX = 2_000;
/** Frames may get lost. */
const ANNOUNCE_EVERY_TICKS = 5;
const NOTHING = new Uint8Array(0);

export function departureLimits({ electionMillis, heartbeatMillis, tickMillis }: Timing): DepartureLimits {
  return {
    allMax: Math.ceil(HAND_OVER_MILLIS_MAX / tickMillis),
    stuckMax: Math.ceil((2 * electionMillis) / tickMillis),
    aloneMax: Math.ceil((2 * heartbeatMillis) / tickMillis),
  };
}

export class Departure {
  readonly #init: DepartureInit;
  #isLeaving = false;
  #isDone = false;
  #ticks = 0;
  #least = Infinity;
  #stuckTicks = 0;
  #aloneTicks = 0;

  constructor(init: DepartureInit) {
    this.#init = init;
  }

  begin(): void {
    this.#isLeaving = true;
    this.#handOver();
  }

  /** Everything is handed over, or nobody takes the rest. */
  get isDone(): boolean {
    return this.#isDone;
  }

  tick(): void {
    if (!this.#isLeaving) return;
    const { allMax, stuckMax, aloneMax } = this.#init.limits;
    this.#ticks += 1;
    this.#handOver();
    this.#isDone ||= this.#ticks >= allMax || this.#stuckTicks >= stuckMax || this.#aloneTicks >= aloneMax;
  }

  #handOver(): void {
    const { raft, announce } = this.#init;
    raft.avoidLeading('stopping', true);
    const { leaderships } = raft;
    if (leaderships === 0) {
      // Also later: it may have been elected once more in between.
      if (!this.#isDone || this.#ticks % ANNOUNCE_EVERY_TICKS === 0) announce();
      this.#isDone = true;
      return;
    }
    this.#stuckTicks = leaderships < this.#least ? 0 : this.#stuckTicks + 1;
    this.#least = Math.min(this.#least, leaderships);
    this.#aloneTicks = raft.canHandOver ? 0 : this.#aloneTicks + 1;
  }
}

/** That of a node whose core is made of `init`. @param nodes who is told that it leads nothing; itself is left out */
export function newDeparture(
  { nodeId, send, config }: NodeCoreInit,
  raft: DepartureInit['raft'],
  nodes: () => readonly NodeId[],
): Departure {
  const announce = (): void => {
    for (const id of nodes()) if (id !== nodeId) send(id, 'leaving', NOTHING);
  };
  return new Departure({ raft, announce, limits: departureLimits(config.timing) });
}
