/** What the clients saw, without a look inside: acknowledged grants, and whether they prove that too much was granted. */
import { findOverGrant, type ObservedGrant } from '../cluster/over-grant.ts';
import type { CustomerRequest } from '../../src/api/customer.ts';
import type { RefundRequest } from '../../src/api/refund.ts';
import type { AllowRequest } from '../../src/api/request.ts';
import type { Attempt, ClientWorld } from './client-world.ts';
import { askedBy, limitsOf } from './id-ledger.ts';
import { check } from './story.ts';

/** By which rules it was granted. */
interface ToldGrant {
  readonly ruleId: string;
  readonly limits?: readonly { readonly ruleId: string }[];
}

export class ObservedGrants {
  readonly #world: ClientWorld;
  /** Those without timestamps, by rule and user. */
  readonly #observed = new Map<string, (ObservedGrant & { readonly id: string })[]>();
  readonly #acknowledged = new Set<string>();
  /** By user and id: somebody may have given it back. */
  readonly #givenBack = new Set<string>();
  /** By user and id: it may have been told as a cost that was used, which no limit denies. */
  readonly #settled = new Set<string>();
  /** Keys that may have been reset, and by rule and user the highest limit that may have been their own. */
  readonly #reset = new Set<string>();
  readonly #ownLimits = new Map<string, number>();

  constructor(world: ClientWorld) {
    this.#world = world;
  }

  /** Somebody asks this. Under one id a repetition is told what the first was granted. */
  asked(request: AllowRequest): void {
    if (request.requestId === undefined) return;
    if (limitsOf(askedBy(request)).some(({ isSettled }) => isSettled === true))
      this.#settled.add(idOf(request));
  }

  /** Under each of its limits. */
  granted({ request, charge }: Attempt, { ruleId, limits = [{ ruleId }] }: ToldGrant): void {
    if (request.timestampMillis !== undefined) return;
    const completeMillis = this.#world.now();
    // Whoever asked the same under this id before, and was not rejected, may be whom it was granted to.
    const { begunMillis } =
      request.requestId === undefined ? charge : this.#world.rejections.firstLike(charge);
    const grant = { invokeMillis: begunMillis, completeMillis, id: idOf(request) };
    for (const [i, { userId, cost, isSettled }] of limitsOf(askedBy(request)).entries()) {
      if (!userId.startsWith('user') || isSettled === true) continue;
      const key = `${limits[i]?.ruleId ?? ruleId}/${userId}`;
      // A repeated answer is the same grant: the interval of the first one that got it is enough.
      const acknowledged = `${key}/${grant.id}`;
      if (request.requestId !== undefined && this.#acknowledged.has(acknowledged)) continue;
      this.#acknowledged.add(acknowledged);
      const observed = this.#observed.get(key) ?? [];
      this.#observed.set(key, observed);
      for (let unit = 0; unit < cost; unit += 1) observed.push(grant);
    }
  }

  /** What was granted under this id may count no more. */
  refunding(request: RefundRequest): void {
    this.#givenBack.add(idOf(request));
  }

  /** An operator wants this of a key. */
  operated({ userId, action }: CustomerRequest): void {
    if (action.type === 'reset' || action.type === 'set') this.#reset.add(userId);
    if (action.type !== 'put') return;
    for (const { ruleId, limit } of action.overrides) {
      const key = `${ruleId}/${userId}`;
      this.#ownLimits.set(key, Math.max(limit, this.#ownLimits.get(key) ?? 0));
    }
  }

  /** No certain violation in real time. */
  check(): void {
    const { tables } = this.#world.settings;
    for (const [key, all] of this.#observed) {
      const grants = all.filter(({ id }) => !this.#givenBack.has(id) && !this.#settled.has(id));
      // Users have none in their names.
      const end = key.lastIndexOf('/');
      const ruleId = key.slice(0, end);
      const rules = tables.flatMap((table) => table.rules.filter((rule) => rule.id === ruleId));
      // Others promise nothing for a rolling window alone.
      if (!rules.every(({ meter = 'slidingLog' }) => meter === 'slidingLog')) continue;
      if (this.#reset.has(key.slice(end + 1))) continue;
      const limit = Math.max(this.#ownLimits.get(key) ?? 0, ...rules.map((rule) => rule.limit));
      const windowMillis = Math.min(...rules.map((rule) => rule.windowMillis));
      const found = findOverGrant(grants, limit, windowMillis - this.#world.gainedMillis());
      check(found === undefined, () => `clients saw an over-grant for ${key}: ${found ?? ''}`);
    }
  }
}

function idOf({
  userId,
  requestId,
}: {
  readonly userId: string;
  readonly requestId?: string | undefined;
}): string {
  return requestId === undefined ? '' : JSON.stringify([userId, requestId]);
}
