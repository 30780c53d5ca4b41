/**
 * Clients of a cluster under test that send described requests alone, in batches and over the Redis protocol, refund
 * grants, and change the rules meanwhile. At the end, when no fault is active, they use up whole limits. Each attempt
 * is one event of the history; there are no silent retries.
 */
import { Agent } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import type { RandomBelow } from '../../raft/core-state.ts';
import type { Rule } from '../../src/api/rule.ts';
import { fieldsOf, type Operation, operationOf } from './history.ts';
import { attempt, nowNanos, PATIENCE_MILLIS, KEPT_MILLIS_MAX } from './http-attempt.ts';
import {
  askOf,
  askOfReply,
  bodyOf,
  commandOf,
  refundOf,
  refundBySettling,
  refundOfReply,
  type Sent,
  type Wish,
} from './joint-attempts.ts';
import type { Ask, JointEvent } from './joint-history.ts';
import { limitsAt, limitsOf, NAMED_RULE, type Subject, WINDOW_MILLIS_MAX } from './joint-rules.ts';
import { isOperated, JointWishes, SETTLED_EVERY } from './joint-wishes.ts';
import { KeyOperator } from './key-operator.ts';
import { RedisClient } from './redis-client.ts';
import { RulesClient } from './rules-client.ts';

export interface JointTarget {
  readonly id: number;
  readonly port: number;
  /** The port of the Redis protocol. */
  readonly respPort: number;
}

export interface JointWorkloadInit {
  readonly random: RandomBelow;
  /** Nodes that clients may ask now, whether they are up or not. */
  readonly targets: () => readonly JointTarget[];
  readonly record: (event: JointEvent | Operation) => void;
  /** The request deadline of the nodes. */
  readonly deadlineMillis: number;
  /**
   * The rules of single requests, some of which are sent in batches with others. They are the same in every document.
   */
  readonly singleRules: readonly Rule[];
}

type Kind = 'alone' | 'batch' | 'redis';

const CLIENTS: readonly Kind[] = ['alone', 'alone', 'alone', 'batch', 'redis', 'redis'];
const PAUSE_MILLIS_MAX = 120;
const AT_ONCE_MAX = 4;
/** One grant in this many is refunded, and one in this many is requested again. */
const REFUNDED_EVERY = 5;
const REPEATED_EVERY = 4;
const SOON_MILLIS_MAX = 900;
/** One attempt and this many more under its id, all well before the id is forgotten. */
const REPEATS_MAX = 2;
const PREPARED_MILLIS_MAX = 30_000;
/** A cluster that stays broken must not keep the run from ending. */
const LAST_CHANGE_MILLIS_MAX = 5_000;
const BATCH_PATH = '/v1/allow/batch';

/**
 * The clients go on for this long after the last fault. Then they stop, so that only earlier grants may cause denials.
 */
const LAST_LOAD_MILLIS = 2_000;
/** Enough for elections and for the windows of the earlier grants. */
const FRESH_AFTER_MILLIS = 5_000;
const WHOLE_AFTER_MILLIS = 4_400 + WINDOW_MILLIS_MAX;
const FRESH_SUBJECTS = 3;

export class JointWorkload {
  readonly #init: JointWorkloadInit;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: CLIENTS.length, timeout: KEPT_MILLIS_MAX });
  readonly #rules: RulesClient;
  readonly #operator: KeyOperator;
  #isActive = false;
  readonly #wishes: JointWishes;
  #clients: Promise<void>[] = [];

  constructor(init: JointWorkloadInit) {
    this.#init = init;
    this.#wishes = new JointWishes(init);
    const shared = { ...init, agent: this.#agent, pick: async () => this.#pick() };
    this.#rules = new RulesClient(shared);
    this.#operator = new KeyOperator(shared);
  }

  /**
   * Gives the cluster its first rule document.
   *
   * @throws Error unless every partition soon decides by it
   */
  async prepare(): Promise<void> {
    if (!(await this.#rules.setWithin('high', PREPARED_MILLIS_MAX)))
      throw new Error(`no document of rules is in force after ${PREPARED_MILLIS_MAX} ms`);
  }

  start(): void {
    this.#isActive = true;
    const clients = CLIENTS.map(async (kind) => this.#run(kind));
    const isActive = (): boolean => this.#isActive;
    this.#clients = [...clients, this.#rules.run(isActive), this.#operator.run(isActive)];
  }

  /** Some load, then a pause, then whole limits. Call it when the last fault has healed. */
  async finish(): Promise<void> {
    const healedMillis = performance.now();
    const until = async (millis: number): Promise<void> =>
      delay(Math.max(0, healedMillis + millis - performance.now()));
    await until(LAST_LOAD_MILLIS);
    this.#isActive = false;
    await Promise.all(this.#clients);
    await this.#rules.setWithin('low', LAST_CHANGE_MILLIS_MAX);
    await until(FRESH_AFTER_MILLIS);
    for (let i = 0; i < FRESH_SUBJECTS; i += 1) {
      const [user, net, org] = [`fresh${i}`, `fresh${i}`, `fresh${i}`];
      await this.#askAll({ kind: 'described', descriptors: i === 0 ? { user } : { user, net, org } });
      await this.#askAll({ kind: 'named', user: `fresh${i}` });
    }
    await until(WHOLE_AFTER_MILLIS);
    await this.#askAll({ kind: 'described', descriptors: { net: 'n0' } });
    await this.#askAll({ kind: 'described', descriptors: { org: 'o0' } });
    for (let i = 0; i < FRESH_SUBJECTS; i += 1)
      await this.#askAll({ kind: 'described', descriptors: { user: `u${i}` } });
    this.#agent.destroy();
  }

  /** Sends as many requests as the smallest limit allows. */
  async #askAll(subject: Subject): Promise<void> {
    const limits = limitsAt('low');
    const least = Math.min(...limitsOf(subject).map(({ rule }) => limits[rule] ?? 0));
    for (let i = 0; i < least; i += 1)
      await this.#askAlone({ subject, cost: 1, settled: false, requestId: this.#wishes.newId() });
  }

  async #run(kind: Kind): Promise<void> {
    const redis = new RedisClient();
    while (this.#isActive) {
      const wishes = Array.from({ length: kind === 'alone' ? 1 : 1 + this.#init.random(AT_ONCE_MAX) }, () =>
        this.#wishes.wish(),
      );
      const asked = await this.#ask(kind, wishes, redis);
      for (const [i, wish] of wishes.entries()) {
        const ask = asked[i];
        if (ask !== undefined) await this.#follow(wish, ask, redis);
      }
      await delay(this.#init.random(PAUSE_MILLIS_MAX));
    }
    redis.close();
  }

  /**
   * Repeats requests that may have been granted, through any API. Repeats some grants, and refunds or settles some.
   * Keys that the operator resets are left out: after a reset a repeated request is a new grant.
   */
  async #follow(wish: Wish, first: Ask, redis: RedisClient): Promise<void> {
    const { random } = this.#init;
    if (isOperated(wish.subject)) return;
    const isRepeated = random(REPEATED_EVERY) === 0;
    const isRefunded = random(REFUNDED_EVERY) === 0;
    let last: Ask | undefined = first;
    for (let i = 0; i < REPEATS_MAX; i += 1) {
      const isOpen = last?.class === 'info';
      if (!this.#isActive || !(isOpen || (isRepeated && last?.allowed === true))) break;
      if (!isOpen) await delay(random(SOON_MILLIS_MAX));
      [last] = await this.#ask(random(2) === 0 ? 'alone' : 'redis', [wish], redis);
      if (!isOpen) break;
    }
    if (last?.allowed !== true || wish.settled) return;
    if (random(SETTLED_EVERY) === 0) return this.#settle(wish);
    if (!isRefunded) return;
    // Twice, to check that nothing is refunded twice; then once more as a request, which must not be granted.
    const times = 1 + random(2);
    for (let i = 0; i < times; i += 1) await this.#refund(wish, redis);
    if (random(2) === 0) await this.#ask('alone', [wish], redis);
  }

  /**
   * Settles a grant at its true cost. The estimate is refunded at some moment from now on, and its id gets no further
   * grant. The history records this as a refund plus a settled request with an id of its own.
   */
  async #settle({ subject, cost, requestId }: Wish): Promise<void> {
    const target = await this.#pick();
    const [first] = limitsOf(subject);
    if (target === undefined || first === undefined) return;
    const wish: Wish = { subject, cost: this.#wishes.settledCost(), settled: true, requestId };
    const sent: Sent = { listener: 'http', node: target.id, invokeNanos: nowNanos() };
    const outcome = await this.#post(target.port, '/v1/allow', bodyOf(wish));
    const settled = askOf(wish, sent, nowNanos(), outcome);
    this.#init.record({ ...settled, requestId: `${requestId}/settled` });
    const grant = { rule: first.rule, cost, receipt: null };
    this.#init.record(refundBySettling({ key: first.key, requestId }, settled, grant));
  }

  async #ask(kind: Kind, wishes: readonly Wish[], redis: RedisClient): Promise<readonly Ask[]> {
    if (kind === 'batch') return this.#askBatch(wishes);
    if (kind === 'redis') return this.#askRedis(wishes, redis);
    const asked: Ask[] = [];
    for (const wish of wishes) {
      const ask = await this.#askAlone(wish);
      if (ask !== undefined) asked.push(ask);
    }
    return asked;
  }

  async #askAlone(wish: Wish): Promise<Ask | undefined> {
    const target = await this.#pick();
    if (target === undefined) return undefined;
    const sent: Sent = { listener: 'http', node: target.id, invokeNanos: nowNanos() };
    const outcome = await this.#post(target.port, '/v1/allow', bodyOf(wish));
    return this.#recorded(askOf(wish, sent, nowNanos(), outcome));
  }

  /** Sends described requests together with as many single ones. The checkers of single requests judge the latter. */
  async #askBatch(wishes: readonly Wish[]): Promise<readonly Ask[]> {
    const target = await this.#pick();
    if (target === undefined) return [];
    const sent: Sent = { listener: 'batch', node: target.id, invokeNanos: nowNanos() };
    const singles = wishes.map(() => this.#wishes.single(target.id, sent.invokeNanos));
    const bodies = [
      ...wishes.map(bodyOf),
      ...singles.map(({ user, rule, requestId }) => ({ userId: user, rule, requestId })),
    ];
    const outcome = await this.#post(target.port, BATCH_PATH, { requests: bodies });
    const completeNanos = nowNanos();
    const answers =
      outcome.kind === 'answer' && outcome.status === 200 ? fieldsOf(outcome.body)['answers'] : undefined;
    const outcomeAt = (i: number): typeof outcome => {
      if (!Array.isArray(answers)) return outcome;
      const body: unknown = answers[i];
      return { kind: 'answer', status: Number(fieldsOf(body)['status'] ?? 0), body };
    };
    for (const [i, single] of singles.entries())
      this.#init.record(operationOf(single, completeNanos, outcomeAt(wishes.length + i)));
    return wishes.map((wish, i) => this.#recorded(askOf(wish, sent, completeNanos, outcomeAt(i))));
  }

  async #askRedis(wishes: readonly Wish[], redis: RedisClient): Promise<readonly Ask[]> {
    const target = await this.#pick();
    if (target === undefined) return [];
    const sent: Sent = { listener: 'redis', node: target.id, invokeNanos: nowNanos() };
    const endings = await redis.pipeline(target.respPort, wishes.map(commandOf), this.#patienceMillis);
    return wishes.flatMap((wish, i) => {
      const ending = endings[i];
      return ending === undefined ? [] : [this.#recorded(askOfReply(wish, sent, ending))];
    });
  }

  async #refund({ subject, requestId }: Wish, redis: RedisClient): Promise<void> {
    const target = await this.#pick();
    const key = limitsOf(subject)[0]?.key;
    if (target === undefined || key === undefined) return;
    // The Redis protocol has users but no other descriptors.
    const user = subject.kind === 'named' ? subject.user : subject.descriptors['user'];
    const isRedis = user !== undefined && this.#init.random(2) === 0;
    const byName = subject.kind === 'named';
    const wish = { key, requestId };
    const sent: Sent = { listener: isRedis ? 'redis' : 'http', node: target.id, invokeNanos: nowNanos() };
    if (isRedis) {
      const [ending] = await redis.pipeline(
        target.respPort,
        [['REFUND', user, 'ID', requestId, ...(byName ? ['RULE', NAMED_RULE] : [])]],
        this.#patienceMillis,
      );
      if (ending !== undefined) this.#init.record(refundOfReply(wish, sent, ending));
      return;
    }
    const about = byName ? { userId: user, rule: NAMED_RULE } : { descriptors: subject.descriptors };
    const outcome = await this.#post(target.port, '/v1/refunds', { ...about, requestId });
    this.#init.record(refundOf(wish, sent, nowNanos(), outcome));
  }

  #recorded(ask: Ask): Ask {
    this.#init.record(ask);
    return ask;
  }

  async #post(port: number, path: string, body: unknown): ReturnType<typeof attempt> {
    const payload = Buffer.from(JSON.stringify(body));
    return attempt({
      agent: this.#agent,
      port,
      method: 'POST',
      path,
      payload,
      patienceMillis: this.#patienceMillis,
    });
  }

  get #patienceMillis(): number {
    return this.#init.deadlineMillis + PATIENCE_MILLIS;
  }

  async #pick(): Promise<JointTarget | undefined> {
    const nodes = this.#init.targets();
    const target = nodes[this.#init.random(Math.max(1, nodes.length))];
    if (target === undefined) await delay(PAUSE_MILLIS_MAX);
    return target;
  }
}
