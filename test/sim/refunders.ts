/**
 * Users who refund their grants now and then, at any node, and some of them twice. Every answer must follow from the
 * log, and a refunded grant does not answer any later request.
 */
import type { AllowRequest } from '../../src/api/request.ts';
import type { RefundAnswer, RefundRequest } from '../../src/api/refund.ts';
import type { Decision } from '../../src/limiter/decision.ts';
import { groupOfPartition } from '../../src/partition/placement.ts';
import type { ClientWorld } from './client-world.ts';
import type { Random } from './random.ts';
import type { SimNode } from './sim-node.ts';
import { check } from './story.ts';

/** The fraction of the grants with ids that are refunded, in worlds with refunds. */
const FRACTION = 0.25;
/** The fraction of those that are refunded once more. */
const AGAIN = 0.4;
const SOON_MILLIS = 400;
const AGAIN_MILLIS = 2_000;

export interface RefundersInit {
  readonly world: ClientWorld;
  readonly isActive: () => boolean;
  /** From now on a grant of this id may be refunded. */
  readonly refunding: (request: RefundRequest) => void;
  /** Since then there is no fault, and everything must be answered. */
  readonly mustDecideSince: () => number;
}

interface Attempt {
  readonly request: RefundRequest;
  readonly node: SimNode;
  readonly life: number;
  readonly askedAt: number;
  isAnswered: boolean;
}

export class Refunders {
  readonly #init: RefundersInit;
  readonly #random: Random;
  readonly #open = new Set<Attempt>();
  /** By user and id: the receipt of the refunded grant, and when its user got the answer. */
  readonly #refunded = new Map<string, { readonly receipt: string; readonly reportedAt: number }>();
  readonly #asked = new Set<string>();
  /** Those that were granted under several limits. */
  readonly #joint = new Set<string>();

  constructor(init: RefundersInit) {
    this.#init = init;
    this.#random = init.world.random.fork();
  }

  /** A user has refunded this, or wants to. */
  isAsked({ userId, requestId = '' }: AllowRequest): boolean {
    return this.#asked.has(keyOf(userId, requestId));
  }

  /** A client has a grant that it requested at `askedAt`. */
  granted({ userId, requestId }: AllowRequest, { decided, limits }: Decision, askedAt: number): void {
    if (requestId === undefined) return;
    const refund = this.#refunded.get(keyOf(userId, requestId));
    const isUsedTwice =
      refund !== undefined && refund.reportedAt < askedAt && refund.receipt === JSON.stringify(decided);
    check(
      !isUsedTwice,
      () => `${userId} gave ${requestId} back, asked again, and was granted ${refund?.receipt}`,
    );
    // The grants that the recovery waits for are not refunded.
    const hasRefunds = this.#init.world.settings.features.includes('refunds');
    if (!hasRefunds || userId.startsWith('probe') || !this.#random.chance(FRACTION)) return;
    if (limits !== undefined) this.#joint.add(keyOf(userId, requestId));
    this.#later(SOON_MILLIS, { ask: 'refund', userId, requestId });
  }

  #later(meanMillis: number, request: RefundRequest): void {
    const { askable, after } = this.#init.world;
    after(this.#random.exponential(meanMillis), () => {
      const nodes = askable();
      if (this.#init.isActive() && nodes.length > 0) this.#ask(this.#random.pick(nodes), request);
    });
  }

  #ask(node: SimNode, request: RefundRequest): void {
    const { now, asks } = this.#init.world;
    const attempt = { request, node, life: node.life, askedAt: now(), isAnswered: false };
    this.#asked.add(keyOf(request.userId, request.requestId));
    this.#init.refunding(request);
    this.#open.add(attempt);
    asks.asked(node.id, request);
    node.ask(request, (answer, partition) => this.#answered(attempt, answer, partition));
  }

  #answered(attempt: Attempt, answer: RefundAnswer, partition: number): void {
    const { node, request, life, askedAt } = attempt;
    const { world, mustDecideSince } = this.#init;
    check(!attempt.isAnswered, () => `${JSON.stringify(request)} was answered twice`);
    this.#end(attempt);
    if (node.life !== life || !node.isUp) return;
    world.story.report(() => `node ${node.id} answers ${JSON.stringify(request)}: ${JSON.stringify(answer)}`);
    const group = groupOfPartition(partition);
    switch (answer.kind) {
      case 'refund': {
        const { refund } = answer;
        world.story.seen(`refund ${refund.refunded ? 'done' : 'of nothing'}`);
        world.limits.refunded(group, request, refund, world.committedIndex(group));
        const key = keyOf(request.userId, request.requestId);
        if (refund.refunded && this.#joint.has(key)) world.story.seen('joint refunded');
        if (refund.refunded && !this.#refunded.has(key))
          this.#refunded.set(key, { receipt: JSON.stringify(refund.decided), reportedAt: world.now() });
        break;
      }
      case 'invalid':
        check(false, () => `refused as invalid: ${JSON.stringify(request)}, ${answer.message}`);
        break;
      case 'unavailable':
        world.story.seen('refund unavailable');
        check(
          askedAt < mustDecideSince() || answer.reason === 'overloaded',
          () => `no node refunds though nothing is broken: ${JSON.stringify(answer)}`,
        );
    }
    if (answer.kind === 'unavailable' || this.#random.chance(AGAIN)) this.#later(AGAIN_MILLIS, request);
  }

  #end(attempt: Attempt): void {
    attempt.isAnswered = true;
    this.#open.delete(attempt);
    this.#init.world.asks.answered(attempt.node.id, attempt.request);
  }

  /** A process ended: its clients get no answer. */
  lost(node: SimNode): void {
    for (const attempt of this.#open) if (attempt.node === node) this.#end(attempt);
  }
}

function keyOf(userId: string, requestId: string): string {
  return JSON.stringify([userId, requestId]);
}
