/**
 * A request in the form in which it is judged, and the list of possible outcomes; and whether two requests with the
 * same request id are the same request.
 */

import type { CustomerGuard } from '../api/customer-record.ts';
import type { AllowRequest } from '../api/request.ts';
import { DEFAULT_RULE } from './rules.ts';

/** In the order in which they are compared, by the names that callers know. */
const FIELDS = ['rule', 'cost', 'timestampMillis'] as const;
type Field = (typeof FIELDS)[number];

/** The parts of a request that a retry must repeat. */
export interface Fingerprint {
  /** `DEFAULT_RULE` if the request named no rule: which rule is the default may change between two attempts. */
  readonly ruleId: string;
  readonly cost: number;
  readonly timestampMillis: number | undefined;
  /**
   * If present, the only field that is compared: a digest of the descriptors from which the others follow. See
   * `AllowRequest`.
   */
  readonly askedDigest: number | undefined;
}

/** A request id was used before, for a different request. */
export interface Conflict {
  /** The first field that differs. */
  readonly field: Field | 'descriptors';
  /** Its value in the first request; undefined if it was absent there. */
  readonly first: string | number | undefined;
}

/**
 * The first difference between `other` and `first`, the request that has the id; undefined if `other` is a retry.
 * Everything the caller asked for must be equal. An id that comes with a different request is a mistake of the
 * caller, not a retry.
 */
export function conflictBetween(first: Fingerprint, other: Fingerprint): Conflict | undefined {
  if (first.askedDigest !== other.askedDigest) return { field: 'descriptors', first: undefined };
  if (first.askedDigest !== undefined) return undefined;
  for (const field of FIELDS) {
    const value = valueOf(first, field);
    if (value !== valueOf(other, field)) return { field, first: value };
  }
  return undefined;
}

function valueOf({ ruleId, cost, timestampMillis }: Fingerprint, field: Field): Conflict['first'] {
  switch (field) {
    case 'rule':
      return ruleId === DEFAULT_RULE ? undefined : ruleId;
    case 'cost':
      return cost;
    case 'timestampMillis':
      return timestampMillis;
    default: {
      const never: never = field;
      return never;
    }
  }
}

/**
 * One request under one limit. The key is not part of it: `LimiterState.lookUp` sets the key before the request is
 * judged.
 */
export interface Question extends Fingerprint {
  readonly hasRequestId: boolean;
  /** Grant only if this request id was granted before. */
  readonly ifRemembered: boolean;
  /** The cost is settled (already spent): neither a limit nor a block denies it. */
  readonly isSettled: boolean;
  /** See `AllowRequest.attempt`. */
  readonly attempt: number | undefined;
  /** The version of the customer record that the request was matched with. */
  readonly guard: CustomerGuard | undefined;
}

/** A question whose object is reused for many requests, one after the other. */
export class ReusedQuestion implements Question {
  ruleId = DEFAULT_RULE;
  cost = 1;
  timestampMillis: number | undefined = undefined;
  hasRequestId = false;
  askedDigest: number | undefined = undefined;
  ifRemembered = false;
  isSettled = false;
  attempt: number | undefined = undefined;
  guard: CustomerGuard | undefined = undefined;

  /** Takes over the fields of `request`. Returns itself. */
  set(request: AllowRequest): this {
    this.ruleId = request.ruleId ?? DEFAULT_RULE;
    this.cost = request.cost ?? 1;
    this.timestampMillis = request.timestampMillis;
    this.hasRequestId = request.requestId !== undefined;
    this.askedDigest = request.askedDigest;
    this.ifRemembered = request.ifRemembered === true;
    this.isSettled = request.settle === true;
    this.attempt = request.attempt;
    this.guard = request.guard;
    return this;
  }
}

/** A new question with the fields of `request`. */
export function questionOf(request: AllowRequest): Question {
  return new ReusedQuestion().set(request);
}

/** The result of judging a question, in the order of the checks. Only `fits` may be granted. */
export type Outcome =
  | 'repeated'
  | 'not_remembered'
  | 'customer_changed'
  | 'blocked'
  | 'unknown_rule'
  | 'denied'
  | 'at_capacity'
  | 'fits';
