/**
 * Asks for sweeps, which forget idle items. Grants sweep as well, but a state without room may get no grants; so a
 * leader that needs room asks here. `IdleSweeps` decides when a quiet partition is due. For both, this file requests a
 * place in the log; `OwnProposals` proposes the sweep.
 */

import type { Command } from '../limiter/log/command.ts';
import type { AppliedPosition } from '../limiter/decision.ts';
import type { LimiterStateMachine, OnDecision } from '../limiter/state-machine.ts';
import { IdleSweeps, type IdleSweepsInit } from './idle-sweeps.ts';

/** The interval between sweeps. Each is an entry that every replica writes to its disk. */
const SWEEP_MILLIS = 100;
/** The pause after a round that freed nothing: windows and horizons have to pass first. */
const REST_MILLIS = 5_000;

interface HousekeepingInit extends IdleSweepsInit {
  /** Asks the driver for a place in the log, soon. */
  readonly requestProposal: () => void;
  readonly refusedAtCapacity?: () => void;
}

/** The housekeeping of one partition. */
export class Housekeeping {
  readonly #init: HousekeepingInit;
  /** Close to a full disk nothing is swept, because a sweep also takes log space. */
  isLowDisk = false;
  #isDue = false;
  #nextMillis = -Infinity;
  /** Sweeps since the last one that freed something, or since the last pause. */
  #fruitless = 0;
  /** Set only while this node leads. */
  #idle: IdleSweeps | undefined;

  constructor(init: HousekeepingInit) {
    this.#init = init;
  }

  /** This node becomes leader, or stops leading. */
  leads(isLeader: boolean): void {
    this.#idle = isLeader ? new IdleSweeps(this.#init) : undefined;
    if (!isLeader) this.#isDue = false;
  }

  /** Room is needed: asks for a sweep, or again for one that found no place in the log. */
  want(): void {
    if (this.#init.monotonicMillis() >= this.#nextMillis) this.#isDue = true;
    if (this.#isDue) this.#init.requestProposal();
  }

  /** A grant was refused for lack of room. */
  refusedAtCapacity(): void {
    this.#init.refusedAtCapacity?.();
    this.want();
  }

  /**
   * Called regularly: searches for idle items even if no room is needed, and asks for a sweep if it is worthwhile.
   * Returns how many items it visited, at most `visitsMax`.
   */
  check(visitsMax: number): number {
    if (this.#idle === undefined || this.isLowDisk) return 0;
    if (this.#idle.isDue()) {
      this.#isDue = true;
      this.#init.requestProposal();
    }
    return this.#idle.check(visitsMax);
  }

  /** Called when there is a place in the log: should a sweep take it? */
  take(): boolean {
    if (!this.#isDue || this.isLowDisk) return false;
    this.#isDue = false;
    this.#nextMillis = this.#init.monotonicMillis() + SWEEP_MILLIS;
    return true;
  }

  /** Applies a command and observes what sweeps free. `sweepsPerRound` sweeps visit everything once. */
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

/** The number of items that a sweep may forget. */
function countOf(machine: LimiterStateMachine): number {
  const { keys, requestIds, customers } = machine.stats();
  return keys + requestIds + customers;
}
