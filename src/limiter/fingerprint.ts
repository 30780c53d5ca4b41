/**
 * What makes two requests under one request id the same request: all that was asked, as it was asked. An id that comes
 * with something else is a mistake of the caller, not a retry. Compares; remembers nothing.
 */

import { DEFAULT_RULE } from './rules.ts';

/** In the order in which they are compared, by the names that callers know. */
const FIELDS = ['rule', 'cost', 'timestampMillis'] as const;
type Field = (typeof FIELDS)[number];

/** The parts of a request that a retry must repeat. */
export interface Fingerprint {
  /** `DEFAULT_RULE` where the request named none: what the default rule is may change between two attempts. */
  readonly ruleId: string;
  readonly cost: number;
  readonly timestampMillis: number | undefined;
  /** Instead of all else, which follows from it and from the rules: see `AllowRequest`. */
  readonly askedDigest: number | undefined;
}

/** A request id was used before, for another request. */
export interface Conflict {
  /** The first field that differs. */
  readonly field: Field | 'descriptors';
  /** Its value in the request that has the id; undefined where that had none. */
  readonly first: string | number | undefined;
}

/** How `other` differs from `first`, which has the request id; undefined if it is a retry. */
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
