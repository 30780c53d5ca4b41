/**
 * The acknowledged grants that clients saw, without internal knowledge, and whether they prove that too much was
 * granted.
 */
import { findOverGrant, type ObservedGrant } from '../cluster/over-grant.ts';
import type { CustomerRequest } from '../../src/api/customer.ts';
import type { RefundRequest } from '../../src/api/refund.ts';
import type { AllowRequest } from '../../src/api/request.ts';
import type { Attempt, ClientWorld } from './client-world.ts';
import { askedBy, limitsOf } from './id-ledger.ts';
import { check } from './story.ts';

/** The rules of the grant. */
interface ReportedGrant {
  readonly ruleId: string;
  readonly limits?: readonly { readonly ruleId: string }[];
}

export class ObservedGrants {
  readonly #world: ClientWorld;
  /** Grants without timestamps, by rule and user. */
  readonly #observed = new Map<string, (ObservedGrant & { readonly id: string })[]>();
  readonly #acknowledged = new Set<string>();
  /** By user and id: the grant may have been refunded. */
  readonly #givenBack = new Set<string>();
  /** By user and id: it may have been granted as a settled cost, which no limit denies. */
  readonly #settled = new Set<string>();
  /** Keys that may have been reset. */
  readonly #reset = new Set<string>();
  /** By rule and user: the highest limit that may have been the user's own. */
  readonly #ownLimits = new Map<string, number>();

  constructor(world: ClientWorld) {
    this.#world = world;
  }

  /** A client asks this. A repetition under the same id gets the first grant. */
  asked(request: AllowRequest): void {
    if (request.requestId === undefined) return;
    if (limitsOf(askedBy(request)).some(({ isSettled }) => isSettled === true))
      this.#settled.add(idOf(request));
  }

  /** The grant counts under each of its limits. */
  granted({ request, charge }: Attempt, { ruleId, limits = [{ ruleId }] }: ReportedGrant): void {
    if (request.timestampMillis !== undefined) return;
    const completeMillis = this.#world.now();
    // The grant may have been made for an earlier attempt under this id that was not rejected.
    const { begunMillis } =
      request.requestId === undefined ? charge : this.#world.rejections.firstLike(charge);
    const grant = { invokeMillis: begunMillis, completeMillis, id: idOf(request) };
    for (const [i, { userId, cost, isSettled }] of limitsOf(askedBy(request)).entries()) {
      if (!userId.startsWith('user') || isSettled === true) continue;
      const key = `${limits[i]?.ruleId ?? ruleId}/${userId}`;
      // A repeated answer reports the same grant, so the interval of its first attempt is enough.
      const acknowledged = `${key}/${grant.id}`;
      if (request.requestId !== undefined && this.#acknowledged.has(acknowledged)) continue;
      this.#acknowledged.add(acknowledged);
      const observed = this.#observed.get(key) ?? [];
      this.#observed.set(key, observed);
      for (let unit = 0; unit < cost; unit += 1) observed.push(grant);
    }
  }

  /** The grant under this id may no longer count. */
  refunding(request: RefundRequest): void {
    this.#givenBack.add(idOf(request));
  }

  /** An operator requests this change of a key. */
  operated({ userId, action }: CustomerRequest): void {
    if (action.type === 'reset' || action.type === 'set') this.#reset.add(userId);
    if (action.type !== 'put') return;
    for (const { ruleId, limit } of action.overrides) {
      const key = `${ruleId}/${userId}`;
      this.#ownLimits.set(key, Math.max(limit, this.#ownLimits.get(key) ?? 0));
    }
  }

  /** Throws if real time proves a violation. */
  check(): void {
    const { tables } = this.#world.settings;
    for (const [key, all] of this.#observed) {
      const grants = all.filter(({ id }) => !this.#givenBack.has(id) && !this.#settled.has(id));
      // User names contain no slash.
      const end = key.lastIndexOf('/');
      const ruleId = key.slice(0, end);
      const rules = tables.flatMap((table) => table.rules.filter((rule) => rule.id === ruleId));
      // Other meters do not promise a rolling window.
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
