/**
 * The actions of operators on one key: read or set its record, block it, reset its usage or set it. Each action goes
 * through the log of the partition that holds the key. Plain data, and the check of the request.
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
 * An action of an operator. Once it is answered, no later request is granted what the action forbids. What the action
 * allows may still be denied for up to two election timeouts, by a deposed leader that does not know it is deposed.
 *
 * - `read`: reads the record through the log, so the answer includes every change that was answered before
 * - `put`: sets the tier and the overrides. Without `isBlocked` the block stays as it is, with its end.
 * - `delete`: deletes the record, including a block
 * - `block`: changes only the block. For `put` and `block`, `durationMillis` is how long the block lasts, 1 to
 *   `BLOCK_MILLIS_MAX`, in group time from the log entry on. Without it the block lasts until an operator removes it.
 * - `reset`: forgets all grants of the key under all rules; the record stays. Repeating it also forgets what was
 *   granted in between.
 * - `set`: forgets the key's grants under these rules and counts `used` instead, from the group time of the entry on.
 *   This is one step, so nothing can be granted in between. The record, and the grants under other rules, stay.
 */
export type CustomerAction =
  | { readonly type: 'read' }
  | {
      readonly type: 'put';
      readonly tier?: string | undefined;
      readonly overrides: readonly LimitOverride[];
      readonly isBlocked?: boolean | undefined;
      /** Only with `isBlocked`: how long the block lasts. */
      readonly durationMillis?: number | undefined;
      /** Do it only if the record has this version; 0: only if there is no record. */
      readonly ifVersion?: number | undefined;
    }
  | { readonly type: 'delete'; readonly ifVersion?: number | undefined }
  | {
      readonly type: 'block';
      readonly isBlocked: boolean;
      /** Only with `isBlocked`: how long the block lasts. */
      readonly durationMillis?: number | undefined;
    }
  | { readonly type: 'reset' }
  | {
      readonly type: 'set';
      /** 1 to `LIMITS_PER_REQUEST_MAX` different ids of rules of the table, not of stated rules. */
      readonly ruleIds: readonly string[];
      /** 0 to the smallest capacity of these rules, as it is for this key. */
      readonly used: number;
    };

/** How an operator sets the usage of a key under a rule. */
export interface UsedQuestion {
  /** 1 to `KEY_BYTES_MAX` bytes. */
  readonly key: string;
  /** The id of a rule, which means all its windows, or the id of one window. */
  readonly rule: string;
  /** 0 to the limit, as it is for this key. */
  readonly used: number;
}

/** A `CustomerAction` on one key, as a partition receives it. */
export interface CustomerRequest {
  readonly ask: 'customer';
  /** The key: 1 to `KEY_BYTES_MAX` bytes. */
  readonly userId: string;
  readonly action: CustomerAction;
  readonly requestId?: undefined;
}

/** The result of a `CustomerAction`. */
export interface CustomerOutcome {
  /** False: the record did not have the version that was asked for, and nothing changed. */
  readonly isDone: boolean;
  /** The record after the action. */
  readonly record: CustomerRecord;
  /** The log entry that did it. */
  readonly decided: Receipt;
}

/** The answer to a `CustomerRequest`. */
export type CustomerAnswer =
  | { readonly kind: 'customer'; readonly outcome: CustomerOutcome }
  | Invalid
  | Unavailable;

/**
 * The first field that is out of its bounds, by the name that callers use. Undefined if the request is well-formed.
 */
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

/**
 * Checks a question before its rule is found: the first field that has a wrong type or is out of its bounds.
 * Undefined if all are within their bounds.
 */
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
