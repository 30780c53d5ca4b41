/**
 * Clients of a cluster under test: many users with small limits and short windows, one hot user, costs and callers'
 * timestamps. They repeat request ids at several nodes at once, while there is no answer, after it, and around the time
 * at which it is forgotten. Each HTTP attempt is one operation of the history; there are no silent retries. A client
 * whose operation ended without an outcome continues under a new process number.
 */
import { Agent } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import type { RandomBelow } from '../../raft/core-state.ts';
import { withoutWindow } from './joint-rules.ts';
import type { Rule } from '../../src/api/rule.ts';
import { MALFORMED_USER } from './checkers/refusals.ts';
import { type Operation, operationOf, type Question } from './history.ts';
import { attempt, nowNanos, PATIENCE_MILLIS, KEPT_MILLIS_MAX } from './http-attempt.ts';

export interface WorkloadInit {
  readonly random: RandomBelow;
  /** Nodes that clients may ask now, whether they are up or not. */
  readonly targets: () => readonly { readonly id: number; readonly port: number }[];
  readonly record: (operation: Operation) => void;
  /** The deadline of the nodes. A client gives an attempt up a little later. */
  readonly deadlineMillis: number;
  readonly requestIdHorizonMillis: number;
}

/** The rule has the name that the document's windows get, because those windows replace it. */
const SHORT: Rule = { id: 'default/second', limit: 3, windowMillis: 1_000, clock: 'cluster' };
const HOT: Rule = { id: 'hot/second', limit: 40, windowMillis: 1_000, clock: 'cluster' };
const COSTLY: Rule = { id: 'cost/2000ms', limit: 10, windowMillis: 2_000, clock: 'cluster' };
const QUICK: Rule = { id: 'quick/200ms', limit: 1, windowMillis: 200, clock: 'cluster' };
/** With `EVENT` every request has a timestamp, with `MIXED` some have. */
const EVENT: Rule = { id: 'event/1500ms', limit: 3, windowMillis: 1_500, clock: 'request' };
const MIXED: Rule = { id: 'mixed/second', limit: 5, windowMillis: 1_000, clock: 'request' };
export const WORKLOAD_RULES: readonly Rule[] = [SHORT, HOT, COSTLY, QUICK, EVENT, MIXED];
/** How often each rule is used, out of ten requests. */
const RULE_MIX: readonly Rule[] = [SHORT, SHORT, SHORT, HOT, COSTLY, QUICK, QUICK, EVENT, EVENT, MIXED];

const CLIENTS = 32;
/** The search for an order of operations takes long if more than this many of one user overlap. */
const CLIENTS_PER_USER_MAX = 16;
const USERS = 30;
const PAUSE_MILLIS_MAX = 90;
const COST_MAX = 3;
/** One request in this many is for a user whose bytes are not UTF-8. */
const MALFORMED_EVERY = 200;
const MALFORMED_BYTES = ['ff', 'fe'] as const;
/** Most timestamps are late by up to a second. A few are much later, and still fewer belong to another epoch. */
const LATE_MILLIS = 1_000;
const VERY_LATE_EVERY = 20;
const VERY_LATE_MILLIS = 90_000;
const OTHER_EPOCH_EVERY = 50;
const OTHER_EPOCH_MILLIS = 1_000_000;
/** One answered grant in this many is repeated. */
const REPEATED_EVERY = 3;
const REPETITIONS_MAX = 64;
const AROUND_EXPIRY_MILLIS = 600;
/** One attempt and this many repetitions under its id. */
const REPEATS_MAX = 3;

type Asked = Omit<Question, 'process' | 'node' | 'invokeNanos'>;

/** A request that is repeated under its id although it was answered. */
interface Repetition {
  readonly asked: Asked;
  readonly dueMillis: number;
}

export class Workload {
  readonly #init: WorkloadInit;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: CLIENTS, timeout: KEPT_MILLIS_MAX });
  #isActive = false;
  #processes = 0;
  #requestIds = 0;
  #clients: Promise<void>[] = [];

  constructor(init: WorkloadInit) {
    this.#init = init;
  }

  start(): void {
    this.#isActive = true;
    this.#clients = Array.from({ length: CLIENTS }, (_, client) => this.#run(client));
  }

  /** Resolves when every client has its last answer or has given up. */
  async stop(): Promise<void> {
    this.#isActive = false;
    await Promise.all(this.#clients);
    this.#agent.destroy();
  }

  async #run(client: number): Promise<void> {
    let process = this.#newProcess();
    const repetitions: Repetition[] = [];
    while (this.#isActive) {
      const due = repetitions.findIndex(({ dueMillis }) => dueMillis <= performance.now());
      const question = repetitions.splice(due, due === -1 ? 0 : 1)[0]?.asked ?? this.#question(client);
      for (let attempt = 0; attempt <= REPEATS_MAX; attempt += 1) {
        const operation = await this.#ask({ ...question, process });
        if (operation === undefined) break;
        if (operation.class === 'info') process = this.#newProcess();
        if (operation.allowed === true && question.requestId !== null)
          this.#maybeRepeat(question, repetitions);
        // A request that may have counted is repeated under its id, mostly at another node.
        const isOpen = operation.class === 'info' && operation.requestId !== null;
        if (!isOpen || !this.#isActive || this.#init.random(5) === 0) break;
      }
      await delay(this.#init.random(PAUSE_MILLIS_MAX));
    }
  }

  #newProcess(): number {
    this.#processes += 1;
    return this.#processes;
  }

  /** Repeats soon, at any time while the answer is remembered, or around the time at which it is forgotten. */
  #maybeRepeat(asked: Asked, repetitions: Repetition[]): void {
    const { random, requestIdHorizonMillis } = this.#init;
    if (random(REPEATED_EVERY) > 0 || repetitions.length === REPETITIONS_MAX) return;
    const kind = random(3);
    const waitMillis =
      kind === 0
        ? random(1_000)
        : kind === 1
          ? random(requestIdHorizonMillis)
          : requestIdHorizonMillis - AROUND_EXPIRY_MILLIS + random(2 * AROUND_EXPIRY_MILLIS);
    repetitions.push({ asked, dueMillis: performance.now() + waitMillis });
  }

  #question(client: number): Asked {
    const { random } = this.#init;
    const rule = RULE_MIX[random(RULE_MIX.length)] ?? SHORT;
    // The two halves of the clients have separate users, and a hot user each.
    const half = client < CLIENTS_PER_USER_MAX ? 'a' : 'b';
    const someone = rule === HOT ? `${half}-hot` : `${half}${random(USERS)}`;
    const isMalformed = random(MALFORMED_EVERY) === 0;
    const user = isMalformed ? `${MALFORMED_USER}${MALFORMED_BYTES[random(2)]}` : someone;
    this.#requestIds += 1;
    return {
      user,
      rule: rule.id,
      limit: rule.limit,
      windowMillis: rule.windowMillis,
      cost: rule === COSTLY ? 1 + random(COST_MAX) : 1,
      timestampMillis: this.#timestamp(rule),
      // A request without an id and without an answer stays unknown forever.
      requestId: random(12) === 0 ? null : `r${this.#requestIds}`,
    };
  }

  #timestamp({ clock, id }: Rule): number | null {
    const { random } = this.#init;
    if (clock !== 'request' || (id === MIXED.id && random(2) === 0)) return null;
    // A user of the mixed rule may be forgotten within seconds, and its next request in another epoch is then its
    // first.
    if (id === EVENT.id && random(OTHER_EPOCH_EVERY) === 0) return random(OTHER_EPOCH_MILLIS);
    const isVeryLate = random(VERY_LATE_EVERY) === 0;
    return Date.now() - random(isVeryLate ? VERY_LATE_MILLIS : LATE_MILLIS);
  }

  async #ask(asked: Omit<Question, 'node' | 'invokeNanos'>): Promise<Operation | undefined> {
    const { random, targets, record } = this.#init;
    const nodes = targets();
    const target = nodes[random(Math.max(1, nodes.length))];
    if (target === undefined) {
      await delay(PAUSE_MILLIS_MAX);
      return undefined;
    }
    const question: Question = { ...asked, node: target.id, invokeNanos: nowNanos() };
    const outcome = await attempt({
      agent: this.#agent,
      port: target.port,
      method: 'POST',
      path: '/v1/allow',
      payload: bytesOf(question),
      patienceMillis: this.#init.deadlineMillis + PATIENCE_MILLIS,
    });
    const operation = operationOf(question, nowNanos(), outcome);
    record(operation);
    return operation;
  }
}

/** The body of a request, as bytes, because a JSON string cannot hold text that is not UTF-8. */
function bytesOf({ user, rule, cost, requestId, timestampMillis }: Question): Buffer {
  const isMalformed = user.startsWith(MALFORMED_USER);
  const userId = isMalformed
    ? Buffer.from(user.slice(MALFORMED_USER.length), 'hex')
    : Buffer.from(JSON.stringify(user).slice(1, -1));
  const rest = JSON.stringify({
    rule: withoutWindow(rule),
    ...(cost !== 1 && { cost }),
    ...(timestampMillis !== null && { timestampMillis }),
    ...(requestId !== null && { requestId }),
  });
  return Buffer.concat([Buffer.from('{"userId":"'), userId, Buffer.from(`",${rest.slice(1)}`)]);
}
