/**
 * Users who send descriptors and leave it to the rules to find the limits: at any node, with and without ids, and again
 * at another node if they got no answer, or to check that nothing is granted twice.
 */
import type { AskAnswer, AskDone, Question } from '../../src/api/question.ts';
import type { ClientWorld } from './client-world.ts';
import type { DescribedWatch } from './described-watch.ts';
import { Patience } from './patience.ts';
import type { Random } from './random.ts';
import type { SimNode } from './sim-node.ts';
import { check } from './story.ts';

const ADDRESSES = 3;
const USERS_MAX = 8;
const ATTEMPTS_MAX = 4;
const REUSE = 0.03;
/** Their requests lead to several partitions, which only the rules know. They wait for all partitions as for one. */
const ANY_PARTITION = 0;
const AGAIN_MILLIS = 300;
/** One id in this many is refunded, this long after its grant. */
const REFUNDED_EACH = 4;
const REFUND_MILLIS = 150;
/** A tick, and the answers a process still lets pass. */
const LATE_MILLIS_MAX = 25;

export interface DescribedClientsInit {
  readonly world: ClientWorld;
  readonly watch: DescribedWatch;
  readonly meanMillis: number;
  readonly isActive: () => boolean;
  /** Since then there is no fault, and everything must be decided. */
  readonly mustDecideSince: () => number;
  /** All partitions decide by the rules that were requested last. */
  readonly areRulesSettled: () => boolean;
}

export class DescribedClients {
  readonly #init: DescribedClientsInit;
  readonly #random: Random;
  readonly #patience: Patience;
  requests = 0;
  grants = 0;
  denials = 0;
  unlimited = 0;
  unavailable = 0;
  conflicts = 0;
  #ids = 0;
  #last: Question | undefined;
  /** Ids that more than one request has. */
  readonly #shared = new Set<string>();

  constructor(init: DescribedClientsInit) {
    this.#init = init;
    this.#random = init.world.random.fork();
    const { now, settings } = init.world;
    this.#patience = new Patience({ random: this.#random, now, isPatient: settings.clients.isPatient });
    this.#next();
  }

  #next(): void {
    const { world, meanMillis, isActive } = this.#init;
    world.after(this.#random.exponential(meanMillis), () => {
      if (isActive()) this.#askAnybody(this.draw(), 1);
      this.#next();
    });
  }

  /** The next request of a user. */
  draw(): Question {
    const random = this.#random;
    const { clients } = this.#init.world.settings;
    const descriptors = new Map<string, string>();
    const users = Math.min(USERS_MAX, clients.users);
    if (random.chance(0.9)) descriptors.set('user', `u${random.below(users)}`);
    if (random.chance(0.7)) descriptors.set('ip', `10.0.0.${random.below(ADDRESSES)}`);
    if (random.chance(0.6) || descriptors.size === 0)
      descriptors.set('endpoint', random.pick(['/dear', '/cheap']));
    const { customers = [] } = this.#init.world.settings.operators ?? {};
    if (customers.length > 0 && random.chance(0.5)) descriptors.set('customer', random.pick(customers));
    if (customers.length > 0 && random.chance(0.2)) descriptors.set('tier', random.pick(['gold', 'free']));
    const request: Question = {
      descriptors,
      ...(random.chance(clients.withCost) && { cost: random.between(1, 2) }),
      ...(random.chance(clients.withId) && { requestId: `d${(this.#ids += 1)}` }),
    };
    const last = this.#last;
    this.#last = request;
    if (last?.requestId === undefined || !random.chance(REUSE)) return request;
    this.#shared.add(last.requestId);
    // The same request with another cost is another request, too.
    if (random.chance(0.5)) return { ...last, cost: last.cost === 2 ? 1 : 2 };
    return { ...request, requestId: last.requestId };
  }

  #askAnybody(request: Question, count: number): void {
    if (!this.#patience.mayAsk(ANY_PARTITION)) return;
    const nodes = this.#patience.worthAsking(this.#init.world.askable());
    if (nodes.length > 0) this.#ask(this.#random.pick(nodes), request, count);
  }

  /** Asks as one item of a batch. `done` gets the node's answer, if there is one. */
  askOnce(node: SimNode, request: Question, done: AskDone): void {
    this.#ask(node, request, 1, done);
  }

  #ask(node: SimNode, request: Question, count: number, done?: AskDone): void {
    const { world, watch } = this.#init;
    this.requests += 1;
    const invokedAt = world.now();
    const arrivedMonotonic = node.monotonicMillis();
    world.story.step(6, node.id, 0);
    const { life } = node;
    let isAnswered = false;
    watch.ask(node, request, (answer, partition) => {
      isAnswered = true;
      const tookMillis = node.monotonicMillis() - arrivedMonotonic;
      this.#answered(node, request, answer, { tookMillis, invokedAt });
      this.#maybeAgain(request, answer, count);
      done?.(answer, partition);
    });
    // If its process is gone, the client gets no answer and asks another node.
    world.after(4 * world.settings.timing.requestDeadlineMillis, () => {
      if (!isAnswered && node.life !== life) this.#maybeAgain(request, undefined, count);
    });
  }

  #answered(
    node: SimNode,
    request: Question,
    answer: AskAnswer,
    { tookMillis, invokedAt }: { readonly tookMillis: number; readonly invokedAt: number },
  ): void {
    const { world, watch, mustDecideSince, areRulesSettled } = this.#init;
    const { requestDeadlineMillis } = world.settings.timing;
    const words = (): string =>
      `${JSON.stringify(Object.fromEntries(request.descriptors))} ${request.requestId ?? ''}: ${JSON.stringify(answer)}`;
    world.story.report(() => `node ${node.id} answers ${words()}`);
    world.story.step(7, node.id, answer.kind === 'decision' && answer.decision.allowed ? 1 : 0);
    world.story.seen(`described ${wordOf(answer)}`);
    this.#patience.answered(node, ANY_PARTITION, answer);
    switch (answer.kind) {
      case 'decision':
        if (answer.decision.allowed) this.grants += 1;
        else this.denials += 1;
        if (answer.decision.allowed) this.#maybeRefund(request);
        check(
          tookMillis <= requestDeadlineMillis + LATE_MILLIS_MAX * Math.max(1, node.clock.rate),
          () => `a decision came after ${tookMillis} ms, past its deadline: ${words()}`,
        );
        return;
      case 'unavailable': {
        this.unavailable += 1;
        const isFull =
          (answer.reason === 'at_capacity' && world.mayBeFull()) ||
          (answer.reason === 'overloaded' && world.settings.queues !== undefined) ||
          // Operators change it all the time.
          answer.reason === 'customer_changed';
        check(
          invokedAt < mustDecideSince() || isFull || !areRulesSettled(),
          () => `unavailable though nothing is broken: ${words()}`,
        );
        return;
      }
      case 'invalid': {
        // No document is applied yet, or a cost is above a limit.
        const isNew = answer.field === 'descriptors' && node.core?.meta.state?.definitions === undefined;
        check(isNew || answer.field === 'cost', () => `refused as invalid: ${words()}`);
        return;
      }
      case 'conflict':
        this.conflicts += 1;
        check(
          this.#shared.has(request.requestId ?? '') || watch.isRefunded(request),
          () => `no other request has this id: ${words()}`,
        );
        return;
      case 'degraded':
        check(false, () => `every rule is closed: ${words()}`);
        return;
      case 'unlimited':
      case 'unmatched':
        this.unlimited += 1;
    }
  }

  /** The id decides whether it is refunded, without a draw, so all other draws stay the same. */
  #maybeRefund(request: Question): void {
    const { world, watch, isActive } = this.#init;
    const number = Number(request.requestId?.slice(1) ?? 0);
    if (!world.settings.features.includes('refunds') || number % REFUNDED_EACH !== 1) return;
    for (const delayMillis of number % 2 === 0 ? [REFUND_MILLIS] : [REFUND_MILLIS, 3 * REFUND_MILLIS])
      world.after(delayMillis, () => {
        const nodes = world.askable();
        const node = nodes[number % nodes.length];
        if (isActive() && node !== undefined) watch.refund(node, request, () => undefined);
      });
  }

  #maybeAgain(request: Question, answer: AskAnswer | undefined, count: number): void {
    const { world, isActive } = this.#init;
    if (request.requestId === undefined || count >= ATTEMPTS_MAX) return;
    const isLost = answer === undefined || answer.kind === 'unavailable';
    if (!this.#random.chance(isLost ? 0.8 : world.settings.clients.again)) return;
    world.after(this.#random.exponential(AGAIN_MILLIS), () => {
      if (isActive()) this.#askAnybody(request, count + 1);
    });
  }
}

function wordOf(answer: AskAnswer): string {
  if (answer.kind === 'unavailable') return answer.reason;
  if (answer.kind !== 'decision') return answer.kind;
  const { isRepeat, decision } = answer;
  return isRepeat === true ? 'repeated' : decision.allowed ? 'granted' : 'denied';
}
