/** Where a request asks for the record of its customer: in which share, or by a question of its own, and what the answer means. Pure. */
import type { AllowAnswer, Receipt } from '../api/answer.ts';
import type { CustomerAnswer, CustomerRequest } from '../api/customer.ts';
import type { CustomerRecord } from '../api/customer-record.ts';
import type { KnownCustomer } from './customer-cache.ts';
import { followsFailModes, type Share } from './share-outcome.ts';

/**
 * - `same`: it is the one that the request was matched with, as it is now; or nobody can say (then without it), and the rules of all
 *   limits let that pass
 * - `other`: it is this one
 * - `refused`: for a block, or because nobody can say
 */
export type RecordFound =
  | { readonly kind: 'same'; readonly record?: CustomerRecord }
  | { readonly kind: 'other'; readonly record: CustomerRecord }
  | { readonly kind: 'refused'; readonly answer: AllowAnswer };

/**
 * The share of the customer's partition first, if there is one, and in it the customer's own limits: so the request's own id belongs
 * to its key whenever one of these applies, whatever the tier.
 */
export function ownFirst(
  shares: readonly Share[],
  { key }: KnownCustomer,
  partition: number,
): readonly Share[] {
  const own = shares.find((share) => share.partition === partition);
  if (own === undefined) return shares;
  const [first, ...others] = own.limits.toSorted(
    (a, b) => Number(b.userId === key) - Number(a.userId === key),
  );
  const sorted = first === undefined ? own : { partition, limits: [first, ...others] as const };
  return [sorted, ...shares.filter((share) => share !== own)];
}

export function readOf({ key: userId }: KnownCustomer): CustomerRequest {
  return { ask: 'customer', userId, action: { type: 'read' } };
}

/**
 * @param shares that are asked next; none: no rule limits the request
 * @param rulesVersion of the rules that it was matched by
 * @param settle the request is a settlement, which no block denies
 */
export function recordFound(
  answer: CustomerAnswer,
  { version, isBlocked }: KnownCustomer,
  shares: readonly Share[],
  rulesVersion: number,
  settle?: true,
): RecordFound {
  if (answer.kind !== 'customer') {
    // Who was blocked when this node heard of it last is not let through for want of an answer.
    const mayPass = shares.length > 0 && !isBlocked;
    const passes = mayPass && shares.every((share) => followsFailModes({ share, answer }));
    return passes ? { kind: 'same' } : { kind: 'refused', answer };
  }
  const { record, decided } = answer.outcome;
  if (record.version !== version) return { kind: 'other', record };
  if (!record.isBlocked || settle === true) return { kind: 'same', record };
  const ruleId = shares[0]?.limits[0].ruleId ?? '';
  // Both in the group time of the record's partition: this node knows of no other.
  const retryAfterMillis = Math.max(0, (record.blockedUntilMillis ?? 0) - decided.timeMillis);
  return { kind: 'refused', answer: blockedFor(retryAfterMillis, ruleId, decided, rulesVersion) };
}

/** As whatever the limiter denies for a block. */
export function blockedFor(
  retryAfterMillis: number,
  ruleId: string,
  decided: Receipt,
  rulesVersion: number,
): AllowAnswer {
  const nothing = { limit: 0, windowMillis: 0, remaining: 0, retryAfterMillis, resetMillis: 0 };
  const decision = { allowed: false, ruleId, ...nothing, isBlocked: true, decided, rulesVersion } as const;
  return { kind: 'decision', decision };
}
