/** When clients repeat requests: lost ones, granted ones, and the next request in the same socket. */
import type { AllowRequest } from '../../src/api/request.ts';
import type { Attempt, ClientWorld } from './client-world.ts';
import type { Patience } from './patience.ts';
import type { Random } from './random.ts';
import type { SimNode } from './sim-node.ts';

export interface RepeatsInit {
  readonly world: ClientWorld;
  readonly random: Random;
  /** Whether clients send requests at all. */
  readonly isActive: () => boolean;
  readonly newId: () => string;
  readonly patience: Patience;
  readonly attempt: (node: SimNode, request: AllowRequest, count: number) => void;
}

/** After this many attempts a client gives up. */
export const ATTEMPTS_MAX = 4;
/**
 * The chance that a client repeats a request without an answer. For new ids it is below one half, or short queues would
 * stay full.
 */
const AGAIN = 0.8;
const ANEW = 0.4;
const RETRY_MILLIS = 200;
/** A client that has waited this often for a partition to answer others gives up. */
const WAITS_MAX = 4;
/** Within this time no clock departs noticeably from real time. */
const CLOSE_MILLIS = 20;

export class Repeats {
  readonly #init: RepeatsInit;

  constructor(init: RepeatsInit) {
    this.#init = init;
  }

  /** The next request of this user was behind the last one, in the same socket. */
  atOnce({ node, request }: Attempt): void {
    const { userId, ruleId } = request;
    if (!node.isOpen) return;
    this.#init.attempt(node, { userId, ...(ruleId !== undefined && { ruleId }) }, ATTEMPTS_MAX);
  }

  /** Repeats a granted request: soon, or around the time when it is forgotten. */
  granted(request: AllowRequest, grantedMillis: number): void {
    const { world, random, isActive, attempt } = this.#init;
    const { clients, tables } = world.settings;
    if (request.requestId === undefined || !random.chance(clients.again)) return;
    const { requestIdHorizonMillis } = random.pick(tables);
    const when = random.pick(['soon', 'soon', 'about', 'last'] as const);
    if (when === 'last') {
      this.#askAtLast(request, grantedMillis + requestIdHorizonMillis);
      return;
    }
    const aboutMillis = requestIdHorizonMillis * (0.9 + random.unit() / 5);
    world.after(when === 'soon' ? random.exponential(1_000) : aboutMillis, () => {
      const nodes = world.askable();
      if (isActive() && nodes.length > 0) attempt(random.pick(nodes), request, ATTEMPTS_MAX);
    });
  }

  /**
   * In the last millisecond of group time in which the request is remembered, or in the next, at a node that need not
   * relay it.
   */
  #askAtLast(request: AllowRequest, untilMillis: number): void {
    const { world, random, isActive, attempt } = this.#init;
    const leader = world.leading(request.userId);
    if (leader === undefined) return;
    const leftMillis = untilMillis + 1.5 * random.unit() - leader.groupMillis;
    if (leftMillis > CLOSE_MILLIS) {
      world.after(leftMillis - CLOSE_MILLIS / 2, () => this.#askAtLast(request, untilMillis));
      return;
    }
    const { node } = leader;
    world.after(Math.max(0, leftMillis), () => {
      if (isActive() && node.isOpen) attempt(node, request, ATTEMPTS_MAX);
    });
  }

  /** Repeats a request that may have counted under its id, and one that did not as a new question. */
  unanswered({ request, count, done }: Attempt, maybeProposed: boolean): void {
    const { random, newId } = this.#init;
    const isSame = maybeProposed || count > 1;
    if (done !== undefined || count >= ATTEMPTS_MAX || !random.chance(isSame ? AGAIN : ANEW)) return;
    const { requestId } = request;
    if (requestId === undefined) return;
    const repeated = isSame ? request : { ...request, requestId: newId() };
    this.#later(repeated, {
      count: isSame ? count + 1 : 1,
      waits: 0,
      meanMillis: RETRY_MILLIS * 2 ** (count - 1),
    });
  }

  #later(
    request: AllowRequest,
    {
      count,
      waits,
      meanMillis,
    }: { readonly count: number; readonly waits: number; readonly meanMillis: number },
  ): void {
    const { world, random, patience, attempt } = this.#init;
    world.after(random.exponential(meanMillis), () => {
      const nodes = patience.worthAsking(world.askable());
      if (patience.mayAsk(world.partitionOf(request.userId))) {
        if (nodes.length > 0) attempt(random.pick(nodes), request, count);
      } else if (waits < WAITS_MAX)
        this.#later(request, { count, waits: waits + 1, meanMillis: 2 * meanMillis });
    });
  }
}
