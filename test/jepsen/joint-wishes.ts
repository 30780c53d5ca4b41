/**
 * Draws the described requests of clients: subjects, costs, and request ids that are never used twice. Sends nothing.
 */
import type { RandomBelow } from '../../raft/core-state.ts';
import type { Rule } from '../../src/api/rule.ts';
import type { Question } from './history.ts';
import type { Wish } from './joint-attempts.ts';
import type { Subject } from './joint-rules.ts';
import { OPERATED_USERS } from './key-operator.ts';

export interface JointWishesInit {
  readonly random: RandomBelow;
  readonly singleRules: readonly Rule[];
}

/** One request in this many settles its cost after the fact, and one grant in this many is settled at its true cost. */
export const SETTLED_EVERY = 8;
const SETTLED_COST_MAX = 8;
const COST_MAX = 3;
const USERS = 8;
const NETS = 3;
const ORGS = 2;
const NAMES = 5;
/** Single requests in batches are for users of their own. */
const SINGLE_USERS = 30;
/** Process numbers start this high, so that no other client has the same. */
const FIRST_PROCESS = 1_000_000;

export class JointWishes {
  readonly #init: JointWishesInit;
  #ids = 0;
  #processes = FIRST_PROCESS;

  constructor(init: JointWishesInit) {
    this.#init = init;
  }

  newId(): string {
    this.#ids += 1;
    return `j${this.#ids}`;
  }

  wish(): Wish {
    const { random } = this.#init;
    const settled = random(SETTLED_EVERY) === 0;
    const grantedCost = random(4) === 0 ? 1 + random(COST_MAX) : 1;
    const cost = settled ? this.settledCost() : grantedCost;
    return { subject: this.#subject(), cost, settled, requestId: this.newId() };
  }

  /** The subject is under one limit, two limits of one key, or up to four limits in up to three partitions. */
  #subject(): Subject {
    const { random } = this.#init;
    const kind = random(12);
    if (kind < 2) return { kind: 'named', user: `j${random(NAMES)}` };
    const isOperated = random(8) === 0;
    const user = { user: isOperated ? OPERATED_USERS[random(OPERATED_USERS.length)]! : `u${random(USERS)}` };
    const net = { net: `n${random(NETS)}` };
    const org = { org: `o${random(ORGS)}` };
    if (kind < 5) return described(user);
    if (kind < 9) return described({ ...user, ...net });
    if (kind < 10) return described({ ...user, ...net, ...org });
    return described(kind === 10 ? net : org);
  }

  /** A single request under the first of the single rules. */
  single(node: number, invokeNanos: number): Question {
    this.#processes += 1;
    const [rule] = this.#init.singleRules;
    if (rule === undefined) throw new Error('there are no single rules');
    const { id, limit, windowMillis } = rule;
    const asked = { process: this.#processes, node, invokeNanos, cost: 1, timestampMillis: null };
    return {
      ...asked,
      user: `c${this.#init.random(SINGLE_USERS)}`,
      rule: id,
      limit,
      windowMillis,
      requestId: this.newId(),
    };
  }

  settledCost(): number {
    return 1 + this.#init.random(SETTLED_COST_MAX);
  }
}

/** The operator blocks and resets the key of this subject. */
export function isOperated(subject: Subject): boolean {
  return subject.kind === 'described' && OPERATED_USERS.some((user) => user === subject.descriptors['user']);
}

function described(descriptors: Readonly<Record<string, string>>): Subject {
  return { kind: 'described', descriptors };
}
