/**
 * A look: how does a user stand? It changes nothing, and nothing is kept of it; what it tells may have changed when it is
 * read. Plain data, and the check of what is asked.
 */
import type { Invalid, LimitStanding, Receipt, Unavailable } from './answer.ts';

/** What callers ask. */
export interface LookQuestion {
  /** Which key, as rules make it: `user=ada`. 1 to `KEY_BYTES_MAX` bytes. */
  readonly key: string;
  /** The id of a rule, or one that is stated, 1 to `RULE_ID_BYTES_MAX` bytes; absent: all that count by such keys. */
  readonly rule?: string | undefined;
}

/** What a partition is asked. */
export interface LookRequest {
  readonly ask: 'look';
  /** Who is looked at: 1 to `KEY_BYTES_MAX` bytes. */
  readonly userId: string;
  /** Under which rule, 1 to `RULE_ID_BYTES_MAX` bytes; absent means every rule of the table. */
  readonly ruleId?: string | undefined;
  /** The cost that the look asks about: 1 to `COST_MAX`; absent means 1. */
  readonly cost?: number | undefined;
  /** The time that the look asks about, as in `AllowRequest`; absent means group time. */
  readonly timestampMillis?: number | undefined;
}

/** How the key stands under each rule, for a request with the cost and the time of the look. */
export interface Standing {
  /** In the order of the rules; just one if one was named. */
  readonly limits: readonly LimitStanding[];
  /** The state it was read from, after the whole entry `index`, and the group time of the look. */
  readonly decided: Receipt;
  /** Everything is denied, whatever is left: see `Decision`. */
  readonly isBlocked?: true;
  /** When the block ends, in group time; absent if it has no end. `decided.timeMillis` is the group time of the look. */
  readonly blockedUntilMillis?: number;
  /** A request that says no more than this key is denied: no rule is for it. */
  readonly isUnmatched?: true;
  /** Of the rules in force there. */
  readonly rulesVersion: number;
}

export type LookAnswer = { readonly kind: 'standing'; readonly standing: Standing } | Invalid | Unavailable;
