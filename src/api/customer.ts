/**
 * What operators say of one key, whatever the rules say of all: its tier, limits of its own, that it is blocked. It is state of
 * the partition that the key lies in. Plain data, and the check of what is asked.
 */
import type { Invalid, Receipt, Unavailable } from './answer.ts';
import { isBoundedInteger, isBoundedText } from './bounded.ts';
import { KEY_BYTES_MAX, RULE_ID_BYTES_MAX } from './request.ts';
import { LIMIT_MAX } from './rule.ts';

/** The longest tier, in UTF-8 bytes. */
export const TIER_BYTES_MAX = 64;
/** The most limits of its own that a key may have. */
export const OVERRIDES_MAX = 16;

/** Takes the place of limit and burst of one rule, for one key. */
export interface LimitOverride {
  /** 1 to `RULE_ID_BYTES_MAX` bytes. Where there is no such rule it changes nothing. */
  readonly ruleId: string;
  /** 0 (deny all) to `LIMIT_MAX`. */
  readonly limit: number;
  /** Of a bucket: 1 to `LIMIT_MAX`; absent: as much as `limit`, whatever the rule says. */
  readonly burst?: number;
}

/** What is known of a key. */
export interface CustomerRecord {
  /** Of the record's last change: it only grows, and no other record of the key has it. 0: there is none. */
  readonly version: number;
  /** 1 to `TIER_BYTES_MAX` bytes. */
  readonly tier?: string;
  /** Of different rules, up to `OVERRIDES_MAX`. */
  readonly overrides: readonly LimitOverride[];
  /** Everything is denied, until it is not blocked any more: no request changes that. */
  readonly isBlocked: boolean;
}

export const NO_RECORD: CustomerRecord = { version: 0, overrides: [], isBlocked: false };

/**
 * - `read`: by the log, so that whoever is told has seen all changes that were answered before
 * - `put`: tier and overrides become these; without `isBlocked` that stays as it is
 * - `delete`: all of it, a block as well
 * - `block`: nothing but that becomes what `isBlocked` says
 * - `reset`: all that any rule remembers of the key's grants is forgotten; the record stays. To repeat it is harmless, but for
 *   what was granted in between
 */
export type CustomerAction =
  | { readonly type: 'read' }
  | {
      readonly type: 'put';
      readonly tier?: string | undefined;
      readonly overrides: readonly LimitOverride[];
      readonly isBlocked?: boolean | undefined;
      /** Only if the record has this version; 0: only if there is none. */
      readonly ifVersion?: number | undefined;
    }
  | { readonly type: 'delete'; readonly ifVersion?: number | undefined }
  | { readonly type: 'block'; readonly isBlocked: boolean }
  | { readonly type: 'reset' };

export interface CustomerRequest {
  readonly ask: 'customer';
  /** The key: 1 to `KEY_BYTES_MAX` bytes. */
  readonly userId: string;
  readonly action: CustomerAction;
  readonly requestId?: undefined;
}

/** What became of it. */
export interface CustomerOutcome {
  /** False: the record has another version than was asked for, and nothing changed. */
  readonly isDone: boolean;
  /** As it is now. */
  readonly record: CustomerRecord;
  /** The entry that did it. */
  readonly decided: Receipt;
}

export type CustomerAnswer =
  | { readonly kind: 'customer'; readonly outcome: CustomerOutcome }
  | Invalid
  | Unavailable;

/** A request was matched with the record of a key, and counts only if that still has this version. */
export interface CustomerGuard {
  /** 1 to `KEY_BYTES_MAX` bytes, of the partition of the request's `userId`. */
  readonly userId: string;
  /** 0: there is none. */
  readonly version: number;
}

/** The first field that is out of its bounds, by the names that callers know; undefined if the request is well-formed. */
export function invalidInCustomer({ userId, action }: CustomerRequest): Invalid | undefined {
  if (!isBoundedText(userId, KEY_BYTES_MAX))
    return wrong('userId', `userId must be text of 1 to ${KEY_BYTES_MAX} bytes`);
  if (action.type !== 'put') return undefined;
  const { tier, overrides } = action;
  if (tier !== undefined && !isBoundedText(tier, TIER_BYTES_MAX))
    return wrong('tier', `tier must be text of 1 to ${TIER_BYTES_MAX} bytes`);
  if (overrides.length > OVERRIDES_MAX)
    return wrong('overrides', `overrides must be at most ${OVERRIDES_MAX}`);
  const seen = new Set<string>();
  for (const [i, { ruleId, limit, burst }] of overrides.entries()) {
    const at = `overrides[${i}]`;
    if (!isBoundedText(ruleId, RULE_ID_BYTES_MAX))
      return wrong(`${at}.rule`, `${at}.rule must be text of 1 to ${RULE_ID_BYTES_MAX} bytes`);
    if (!isBoundedInteger(limit, 0, LIMIT_MAX))
      return wrong(`${at}.limit`, `${at}.limit must be an integer from 0 to ${LIMIT_MAX}`);
    if (burst !== undefined && !isBoundedInteger(burst, 1, LIMIT_MAX))
      return wrong(`${at}.burst`, `${at}.burst must be an integer from 1 to ${LIMIT_MAX}`);
    if (seen.has(ruleId)) return wrong(`${at}.rule`, `${at}.rule must be there once`);
    seen.add(ruleId);
  }
  return undefined;
}

function wrong(field: string, message: string): Invalid {
  return { kind: 'invalid', field, message };
}
