/**
 * The usage report of a cluster: how many answers its nodes gave, by rule, minute and key. This file has the query
 * with its bounds, and the report. Plain data; nothing is decided by it.
 */
import { isBoundedInteger, isBoundedText } from './bounded.ts';
import { InvalidFieldError } from './fields.ts';
import { RULE_ID_BYTES_MAX } from './request.ts';

/**
 * The counted outcomes of answers. `unavailable`: no node could decide. `degraded`: no node could decide, and the
 * fail modes of the rules did.
 */
export const USAGE_OUTCOMES = ['allowed', 'denied', 'unavailable', 'degraded'] as const;
/** One of `USAGE_OUTCOMES`. */
export type UsageOutcome = (typeof USAGE_OUTCOMES)[number];
/**
 * The decisions that a shadow rule would have made about requests that all other rules allowed. The answer itself came
 * from the other rules.
 */
export const USAGE_SHADOWS = ['wouldAllow', 'wouldDeny'] as const;
/**
 * All counters of a rule, in the order in which they are stored and sent. New ones go last and need a new version
 * (`versions.ts`).
 */
export const USAGE_COLUMNS = [...USAGE_OUTCOMES, ...USAGE_SHADOWS] as const;
/** One of `USAGE_COLUMNS`. */
export type UsageColumn = (typeof USAGE_COLUMNS)[number];

/** The minutes of history that are kept: a day. */
export const USAGE_MINUTES_MAX = 1_440;
const USAGE_MINUTES_DEFAULT = 60;
/** The most keys in one list of a report. */
export const USAGE_TOP_MAX = 100;
/** The name under which all stated rules are counted together. */
export const STATED_RULES = 'LIMIT/WINDOWms';
/**
 * The name under which answers are counted that belong to no rule, because no node decided or because there are too
 * many rules.
 */
export const OTHER_RULES = 'OTHER';

/** A checked query. */
export interface UsageQuery {
  /** The number of minutes, including the current one: 1 to `USAGE_MINUTES_MAX`. */
  readonly minutes: number;
  /** Only this rule; absent: all rules. */
  readonly ruleId?: string | undefined;
  /** The number of keys in each list, 0 to `USAGE_TOP_MAX`. 0: no keys. */
  readonly top: number;
}

/** Numbers of answers by outcome. Each answer counts once, even if its request costs more than 1. */
export type UsageCounts = Readonly<Record<UsageColumn, number>>;

/** A key under a rule. The true count is between `count - error` and `count`. */
export interface TopKey {
  readonly rule: string;
  readonly key: string;
  readonly count: number;
  readonly error: number;
}

/** The sum of the figures of all nodes that responded in time. */
export interface UsageReport {
  readonly minutes: number;
  /** The nodes whose figures are included. */
  readonly nodes: readonly number[];
  /** The nodes of the cluster that did not respond in time; their figures are missing. */
  readonly silent: readonly number[];
  /** The rules with at least one answer or shadow decision in these minutes, ordered by name. */
  readonly rules: readonly ({ readonly rule: string } & UsageCounts)[];
  /**
   * All these rules together, by minute. Element i is the minute that begins i minutes after `fromMillis`
   * (milliseconds since 1970).
   */
  readonly history: {
    readonly fromMillis: number;
    /**
     * The 99th percentile of the answer times of each minute, under all rules, in milliseconds: that of the slowest
     * node. Null: none was timed.
     */
    readonly p99Millis?: readonly (number | null)[];
  } & Readonly<Record<UsageOutcome, readonly number[]>>;
  /**
   * The keys with the most answers, most first, since `fromMillis`: the current hour and the one before. Only if keys
   * were asked for.
   */
  readonly top?: {
    readonly fromMillis: number;
    readonly allowed: readonly TopKey[];
    readonly denied: readonly TopKey[];
  };
}

/** Why there is no report. `tooMany`: too many such queries are open. `starting`: the node is not up yet. */
export const USAGE_FAILURES = {
  starting: 'the node is starting, and knows no other nodes yet',
  tooMany: 'too many usage queries are open; try again in a second',
} as const;
/** The answer to a `UsageQuery`. */
export type UsageResult =
  | { readonly ok: true; readonly report: UsageReport }
  | { readonly ok: false; readonly reason: keyof typeof USAGE_FAILURES };

/** Checks a query. @throws InvalidFieldError naming the field and its bound */
export function validateUsageQuery(query: {
  readonly minutes?: unknown;
  readonly rule?: unknown;
  readonly top?: unknown;
}): UsageQuery {
  const { minutes = USAGE_MINUTES_DEFAULT, rule, top = 0 } = query;
  if (!isBoundedInteger(minutes, 1, USAGE_MINUTES_MAX))
    throw new InvalidFieldError('minutes', `must be an integer from 1 to ${USAGE_MINUTES_MAX}`);
  if (query.top !== undefined && !isBoundedInteger(top, 1, USAGE_TOP_MAX))
    throw new InvalidFieldError('top', `must be an integer from 1 to ${USAGE_TOP_MAX}`);
  if (rule !== undefined && !isBoundedText(rule, RULE_ID_BYTES_MAX))
    throw new InvalidFieldError('rule', `must be text of 1 to ${RULE_ID_BYTES_MAX} bytes`);
  return { minutes, ruleId: rule, top: Number(top) };
}
