/**
 * Hands over the leaderships of a node before its process ends, repeating until that has worked or is hopeless, and
 * then notifies its peers that they should not ask it any more. Driven by ticks; the caller ends the process.
 */
import type { MultiRaft } from '../../raft/driver/multi-raft.ts';
import type { NodeId } from '../../raft/types.ts';
import type { Timing } from '../config/config.ts';
import type { NodeCoreInit } from './node-core-init.ts';

/** What `Departure` needs. */
export interface DepartureInit {
  readonly raft: Pick<MultiRaft, 'avoidLeading' | 'canHandOver' | 'leaderships'>;
  /** Notifies the peers that this node leads nothing any more. */
  readonly announce: () => void;
  readonly limits: DepartureLimits;
}

/** Bounds in ticks. Leaderships that are not handed over by then are left to elections. */
export interface DepartureLimits {
  readonly allMax: number;
  /** Ticks without progress. */
  readonly stuckMax: number;
  /** Ticks without any possible successor; peers that are stopping too say so within a heartbeat. */
  readonly aloneMax: number;
}

/** Longest time that a stopping node tries to hand over. */
const HAND_OVER_MILLIS_MAX = 2_000;
/** The announcement is repeated, as frames may get lost. */
const ANNOUNCE_EVERY_TICKS = 5;
const NOTHING = new Uint8Array(0);

/** The bounds that follow from the timing of a cluster. */
export function departureLimits({ electionMillis, heartbeatMillis, tickMillis }: Timing): DepartureLimits {
  return {
    allMax: Math.ceil(HAND_OVER_MILLIS_MAX / tickMillis),
    stuckMax: Math.ceil((2 * electionMillis) / tickMillis),
    aloneMax: Math.ceil((2 * heartbeatMillis) / tickMillis),
  };
}

/** The departure of one node. */
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

  /** Begins to hand over. */
  begin(): void {
    this.#isLeaving = true;
    this.#handOver();
  }

  /** Everything is handed over, or nobody takes the rest. */
  get isDone(): boolean {
    return this.#isDone;
  }

  /** Call once per tick. */
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
      // Repeated also later, as the node may have been elected once more in between.
      if (!this.#isDone || this.#ticks % ANNOUNCE_EVERY_TICKS === 0) announce();
      this.#isDone = true;
      return;
    }
    this.#stuckTicks = leaderships < this.#least ? 0 : this.#stuckTicks + 1;
    this.#least = Math.min(this.#least, leaderships);
    this.#aloneTicks = raft.canHandOver ? 0 : this.#aloneTicks + 1;
  }
}

/** The departure of a node. @param nodes the nodes to notify; the node itself is skipped */
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
