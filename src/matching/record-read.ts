/**
 * The record of a request's customer: the order of the parts, so that a limit of the customer itself goes first; the
 * request that reads the record; and what its answer means for the request. Pure functions.
 */
import type { AllowAnswer, Receipt } from '../api/answer.ts';
import type { CustomerAnswer, CustomerRequest } from '../api/customer.ts';
import type { CustomerRecord } from '../api/customer-record.ts';
import type { KnownCustomer } from './customer-cache.ts';
import { followsFailModes, type RequestPart } from './part-outcome.ts';

/**
 * What reading a record says about a request:
 *
 * - `same`: the request was matched with this record. Without `record`: the record cannot be read, and the fail
 *   modes of all limits let the request pass.
 * - `other`: the record has changed to this one
 * - `refused`: the customer is blocked, or its record cannot be read
 */
export type RecordFound =
  | { readonly kind: 'same'; readonly record?: CustomerRecord }
  | { readonly kind: 'other'; readonly record: CustomerRecord }
  | { readonly kind: 'refused'; readonly answer: AllowAnswer };

/**
 * Moves the part in the customer's partition to the front, and in it the limits of the customer's own key. So that
 * key keeps the request's id whenever such a limit applies, in every tier.
 */
export function ownFirst(
  parts: readonly RequestPart[],
  { key }: KnownCustomer,
  partition: number,
): readonly RequestPart[] {
  const own = parts.find((part) => part.partition === partition);
  if (own === undefined) return parts;
  const [first, ...others] = own.limits.toSorted(
    (a, b) => Number(b.userId === key) - Number(a.userId === key),
  );
  const sorted = first === undefined ? own : { partition, limits: [first, ...others] as const };
  return [sorted, ...parts.filter((part) => part !== own)];
}

/** The request that reads a customer's record through the log. */
export function readOf({ key: userId }: KnownCustomer): CustomerRequest {
  return { ask: 'customer', userId, action: { type: 'read' } };
}

/**
 * Compares the answer with the record that a request was matched with.
 *
 * @param parts the parts that are asked next; empty: no rule limits the request
 * @param rulesVersion of the rules that the request was matched with
 * @param settle the request is a settlement, which no block denies
 */
export function recordFound(
  answer: CustomerAnswer,
  { version, isBlocked }: KnownCustomer,
  parts: readonly RequestPart[],
  rulesVersion: number,
  settle?: true,
): RecordFound {
  if (answer.kind !== 'customer') {
    // A customer that this node last knew as blocked is not let through because the answer is missing.
    const mayPass = parts.length > 0 && !isBlocked;
    const passes = mayPass && parts.every((part) => followsFailModes({ part, answer }));
    return passes ? { kind: 'same' } : { kind: 'refused', answer };
  }
  const { record, decided } = answer.outcome;
  if (record.version !== version) return { kind: 'other', record };
  if (!record.isBlocked || settle === true) return { kind: 'same', record };
  const ruleId = parts[0]?.limits[0].ruleId ?? '';
  // Both times are group times of the record's partition, so they can be compared.
  const retryAfterMillis = Math.max(0, (record.blockedUntilMillis ?? 0) - decided.timeMillis);
  return { kind: 'refused', answer: blockedFor(retryAfterMillis, ruleId, decided, rulesVersion) };
}

/** The denial of a blocked customer, in the same form as the limiter answers it. */
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
