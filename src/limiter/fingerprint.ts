/**
 * Decides whether two requests with the same request id are the same request: everything the caller asked for must be
 * equal. An id that comes with a different request is a mistake of the caller, not a retry.
 */

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

/** The first difference between `other` and `first`, the request that has the id; undefined if `other` is a retry. */
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
