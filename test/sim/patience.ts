/**
 * How users wait. After a failure a user waits before it asks the same partition again, twice as long each time. Then
 * one of them asks, and the others wait for its answer. Users do not ask a node again that reported it is no member.
 */
import type { AllowAnswer } from '../../src/api/answer.ts';
import type { AskAnswer } from '../../src/api/question.ts';
import type { Random } from './random.ts';
import type { SimNode } from './sim-node.ts';

const FIRST_MILLIS = 30;
const LAST_MILLIS = 2_000;

interface Wait {
  untilMillis: number;
  millis: number;
  /** A user has asked since. */
  isTried: boolean;
}

export interface PatienceInit {
  readonly random: Random;
  readonly now: () => number;
  /** False: clients keep asking. */
  readonly isPatient: boolean;
}

export class Patience {
  readonly #init: PatienceInit;
  readonly #waits = new Map<number, Wait>();
  /** Nodes that reported they are no member, with the process that did. */
  readonly #outside = new Map<SimNode, number>();

  constructor(init: PatienceInit) {
    this.#init = init;
  }

  /** Whether a client may ask this partition now. After a failure only one may; the others wait for its answer. */
  mayAsk(partition: number): boolean {
    const wait = this.#waits.get(partition);
    if (wait === undefined) return true;
    if (this.#init.now() < wait.untilMillis) return false;
    // Its answer may never come.
    wait.untilMillis = this.#init.now() + wait.millis;
    wait.isTried = true;
    return true;
  }

  /** The `nodes` that are worth asking; all of them if none is. */
  worthAsking(nodes: readonly SimNode[]): readonly SimNode[] {
    if (this.#outside.size === 0) return nodes;
    const rest = nodes.filter((node) => this.#outside.get(node) !== node.life);
    return rest.length > 0 ? rest : nodes;
  }

  /** The answer of `node`, or undefined if it died. */
  answered(node: SimNode, partition: number, answer: AllowAnswer | AskAnswer | undefined): void {
    if (!this.#init.isPatient) return;
    if (answer !== undefined && answer.kind !== 'unavailable') {
      this.#waits.delete(partition);
      return;
    }
    if (answer?.reason === 'not_member') this.#outside.set(node, node.life);
    const { now, random } = this.#init;
    const wait = this.#waits.get(partition) ?? { untilMillis: 0, millis: FIRST_MILLIS, isTried: false };
    // All failures during one wait count as one.
    if (now() < wait.untilMillis && !wait.isTried) return;
    wait.isTried = false;
    wait.untilMillis = now() + wait.millis * (0.5 + random.unit());
    wait.millis = Math.min(LAST_MILLIS, 2 * wait.millis);
    this.#waits.set(partition, wait);
  }
}
