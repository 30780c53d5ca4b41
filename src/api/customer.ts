/**
 * What operators say of one key, whatever the rules say of all: its tier, limits of its own, that it is blocked. It is state of
 * the partition that the key lies in. Plain data, and the check of what is asked.
 */
import type { Invalid, Receipt, Unavailable } from './answer.ts';
import { isBoundedInteger, isBoundedText } from './bounded.ts';
import {
  BLOCK_MILLIS_MAX,
  type CustomerRecord,
  type LimitOverride,
  OVERRIDES_MAX,
  TIER_BYTES_MAX,
} from './customer-record.ts';
import { KEY_BYTES_MAX, LIMITS_PER_REQUEST_MAX, RULE_ID_BYTES_MAX } from './request.ts';
import { FIXED_LIMIT_MAX, LIMIT_MAX } from './rule.ts';

/**
 * Once one is answered no request that comes after is granted what it forbids. What it allows may still be denied by a leader that was
 * deposed and does not know it: for two election timeouts at most.
 *
 * - `read`: by the log, so that whoever is told has seen all changes that were answered before
 * - `put`: tier and overrides become these; without `isBlocked` the block stays as it is, with its end
 * - `delete`: all of it, a block as well
 * - `block`: nothing but that becomes what `isBlocked` says. Of `put` and `block`, `durationMillis` is how long it lasts, 1 to
 *   `BLOCK_MILLIS_MAX`, in group time from the entry that says so; without it until an operator takes it back
 * - `reset`: all that any rule remembers of the key's grants is forgotten; the record stays. To repeat it is harmless, but for
 *   what was granted in between
 * - `set`: what these rules remember of the key's grants is forgotten, and `used` counts instead, from the group time of the entry on: in
 *   one step, so nobody is granted anything in between. The record stays. Other rules remember what they did
 */
export type CustomerAction =
  | { readonly type: 'read' }
  | {
      readonly type: 'put';
      readonly tier?: string | undefined;
      readonly overrides: readonly LimitOverride[];
      readonly isBlocked?: boolean | undefined;
      /** Only with `isBlocked`. */
      readonly durationMillis?: number | undefined;
      /** Only if the record has this version; 0: only if there is none. */
      readonly ifVersion?: number | undefined;
    }
  | { readonly type: 'delete'; readonly ifVersion?: number | undefined }
  | {
      readonly type: 'block';
      readonly isBlocked: boolean;
      /** Only with `isBlocked`. */
      readonly durationMillis?: number | undefined;
    }
  | { readonly type: 'reset' }
  | {
      readonly type: 'set';
      /** 1 to `LIMITS_PER_REQUEST_MAX` of different ids, of rules of the table: stated rules have none. */
      readonly ruleIds: readonly string[];
      /** 0 to the least that one of the rules may grant at once, as it is for the key. */
      readonly used: number;
    };

/** How much of a rule's limit a key has used, as an operator says it. */
export interface UsedQuestion {
  /** 1 to `KEY_BYTES_MAX` bytes. */
  readonly key: string;
  /** A rule with all its windows, or one window. */
  readonly rule: string;
  /** 0 to the limit, as it is for the key. */
  readonly used: number;
}

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

/** The first field that is out of its bounds, by the names that callers know; undefined if the request is well-formed. */
export function invalidInCustomer({ userId, action }: CustomerRequest): Invalid | undefined {
  if (!isBoundedText(userId, KEY_BYTES_MAX))
    return wrong('userId', `userId must be text of 1 to ${KEY_BYTES_MAX} bytes`);
  if (action.type === 'set') return invalidInSet(action);
  if (action.type !== 'put' && action.type !== 'block') return undefined;
  const { isBlocked, durationMillis } = action;
  if (durationMillis !== undefined && isBlocked !== true)
    return wrong(
      'durationMillis',
      'durationMillis must be absent: it is how long a block lasts, and there is none',
    );
  if (durationMillis !== undefined && !isBoundedInteger(durationMillis, 1, BLOCK_MILLIS_MAX))
    return wrong('durationMillis', `durationMillis must be an integer from 1 to ${BLOCK_MILLIS_MAX}`);
  if (action.type === 'block') return undefined;
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

/** The first field of a door's question that is out of its bounds, whatever type it has; undefined: none is. */
export function invalidInUsed({ key, rule, used }: UsedQuestion): Invalid | undefined {
  return invalidInCustomer({
    ask: 'customer',
    userId: key,
    action: { type: 'set', ruleIds: [rule], used },
  });
}

function invalidInSet({
  ruleIds,
  used,
}: Extract<CustomerAction, { readonly type: 'set' }>): Invalid | undefined {
  if (!isBoundedInteger(used, 0, FIXED_LIMIT_MAX))
    return wrong('used', `used must be an integer from 0 to ${FIXED_LIMIT_MAX}`);
  const areBounded = ruleIds.every((ruleId) => isBoundedText(ruleId, RULE_ID_BYTES_MAX));
  if (!areBounded) return wrong('rule', `rule must be text of 1 to ${RULE_ID_BYTES_MAX} bytes`);
  const count = new Set(ruleIds).size;
  if (count === 0 || count < ruleIds.length || count > LIMITS_PER_REQUEST_MAX)
    return wrong('rule', `rule must have 1 to ${LIMITS_PER_REQUEST_MAX} windows`);
  return undefined;
}

function wrong(field: string, message: string): Invalid {
  return { kind: 'invalid', field, message };
}
