/** What the clients of rules ask for, drawn: subjects, costs, and ids of which none is used twice. It sends nothing. */
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

/** One request in so many tells its cost after the fact; of what was granted, one in as many tells its true cost. */
export const SETTLED_EVERY = 8;
const SETTLED_COST_MAX = 8;
const COST_MAX = 3;
const USERS = 8;
const NETS = 3;
const ORGS = 2;
const NAMES = 5;
/** Batches of single requests are of users that nobody else asks for. */
const SINGLE_USERS = 30;
/** They come in so large a number that no other process has one of them. */
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

  /** Under one limit, two of one key, or up to four in as many as three partitions. */
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

  /** Under the first of the single rules. */
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

/** Of a key that the operator blocks and resets. */
export function isOperated(subject: Subject): boolean {
  return subject.kind === 'described' && OPERATED_USERS.some((user) => user === subject.descriptors['user']);
}

function described(descriptors: Readonly<Record<string, string>>): Subject {
  return { kind: 'described', descriptors };
}
