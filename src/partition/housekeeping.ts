/**
 * When a leader asks the log to forget what is idle. Grants do that on their way; where none can be made for want of
 * room, or where nobody asks any more, nobody would. It asks for a place in the log, and proposes nothing itself.
 */

import type { Command } from '../limiter/log/command.ts';
import type { AppliedPosition } from '../limiter/decision.ts';
import type { LimiterStateMachine, OnDecision } from '../limiter/state-machine.ts';
import { IdleSweeps, type IdleSweepsInit } from './idle-sweeps.ts';

/** Between two sweeps. Each is an entry that every replica writes to its disk. */
const SWEEP_MILLIS = 100;
/** After a round in which nothing was idle: windows and horizons have to pass. */
const REST_MILLIS = 5_000;

interface HousekeepingInit extends IdleSweepsInit {
  /** Asks the driver for a place in the log, soon. */
  readonly requestProposal: () => void;
  readonly refusedAtCapacity?: () => void;
}

export class Housekeeping {
  readonly #init: HousekeepingInit;
  /** Close to a full disk nothing is swept: that takes place in the log, too. */
  isLowDisk = false;
  #isDue = false;
  #nextMillis = -Infinity;
  /** Sweeps since the last one that freed something, or since the last rest. */
  #fruitless = 0;
  /** Only while this node leads. */
  #idle: IdleSweeps | undefined;

  constructor(init: HousekeepingInit) {
    this.#init = init;
  }

  /** This node leads from now on, or no longer. */
  leads(isLeader: boolean): void {
    this.#idle = isLeader ? new IdleSweeps(this.#init) : undefined;
    if (!isLeader) this.#isDue = false;
  }

  /** Room is wanted: asks for a sweep, also for one that found no place in the log before. */
  want(): void {
    if (this.#init.monotonicMillis() >= this.#nextMillis) this.#isDue = true;
    if (this.#isDue) this.#init.requestProposal();
  }

  /** A grant was refused for want of room. */
  refusedAtCapacity(): void {
    this.#init.refusedAtCapacity?.();
    this.want();
  }

  /**
   * Time passed: looks for what is idle though nobody wants room, and asks for a sweep where that is worth one. To be called again and
   * again. Returns the number of things that it looked at, `looksMax` at most.
   */
  look(looksMax: number): number {
    if (this.#idle === undefined || this.isLowDisk) return 0;
    if (this.#idle.isDue()) {
      this.#isDue = true;
      this.#init.requestProposal();
    }
    return this.#idle.look(looksMax);
  }

  /** Asked when there is a place in the log: is a sweep to take it? */
  take(): boolean {
    if (!this.#isDue || this.isLowDisk) return false;
    this.#isDue = false;
    this.#nextMillis = this.#init.monotonicMillis() + SWEEP_MILLIS;
    return true;
  }

  /** Applies a command, and learns from what a sweep frees: so many of them as `sweepsPerRound` come by everything there is. */
  apply(command: Command, position: AppliedPosition, onDecision?: OnDecision): void {
    const { machine, monotonicMillis } = this.#init;
    if (command.type !== 'sweep') {
      machine.apply(command, position, onDecision);
      this.#idle?.changed();
      return;
    }
    const bytes = machine.stateBytes;
    const count = countOf(machine);
    machine.apply(command, position);
    this.#idle?.swept(count - countOf(machine));
    this.#fruitless = machine.stateBytes < bytes ? 0 : this.#fruitless + 1;
    if (this.#fruitless < machine.sweepsPerRound) return;
    this.#fruitless = 0;
    this.#nextMillis = monotonicMillis() + REST_MILLIS;
  }

  /** Another state was installed. */
  replaced(): void {
    this.#idle?.replaced();
  }
}

/** All that a sweep may forget. */
function countOf(machine: LimiterStateMachine): number {
  const { keys, requestIds, customers } = machine.stats();
  return keys + requestIds + customers;
}
