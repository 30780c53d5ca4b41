/**
 * What the nodes of a cluster counted of the answers that their doors gave: how it is asked for, with the bounds of the
 * question, and what is told. Plain data; nothing is decided by it.
 */
import { isBoundedInteger, isBoundedText } from './bounded.ts';
import { InvalidFieldError } from './fields.ts';
import { RULE_ID_BYTES_MAX } from './request.ts';

/** What is counted of answers. `unavailable`: nobody could decide. `degraded`: nobody could, and fail modes of rules did. */
export const USAGE_OUTCOMES = ['allowed', 'denied', 'unavailable', 'degraded'] as const;
export type UsageOutcome = (typeof USAGE_OUTCOMES)[number];
/** What a rule in shadow would have done to requests that all other rules let through. These are answers of other rules. */
export const USAGE_TRIALS = ['wouldAllow', 'wouldDeny'] as const;
/** All that is counted of every rule, in the order in which columns are kept and sent: new ones go last, and need a new version (`versions.ts`). */
export const USAGE_COLUMNS = [...USAGE_OUTCOMES, ...USAGE_TRIALS] as const;
export type UsageColumn = (typeof USAGE_COLUMNS)[number];

/** Minutes of history that are kept: a day. */
export const USAGE_MINUTES_MAX = 1_440;
const USAGE_MINUTES_DEFAULT = 60;
/** Keys of one list that are told. */
export const USAGE_TOP_MAX = 100;
/** All rules that requests state themselves are counted together, as if they were one of this name. */
export const STATED_RULES = 'LIMIT/WINDOWms';
/** What cannot be counted under the name of a rule: nobody decided, or there are too many rules. */
export const OTHER_RULES = 'OTHER';

export interface UsageQuery {
  /** So many minutes, the one under way included: 1 to `USAGE_MINUTES_MAX`. */
  readonly minutes: number;
  /** Of this rule alone; absent: of all. */
  readonly ruleId?: string | undefined;
  /** So many keys of each list, 0 to `USAGE_TOP_MAX`; 0: no key is named. */
  readonly top: number;
}

/** By name of the column. Answers, whatever each costs. */
export type UsageCounts = Readonly<Record<UsageColumn, number>>;

/** A key under a rule. True is a number from `count - error` to `count`. */
export interface TopKey {
  readonly rule: string;
  readonly key: string;
  readonly count: number;
  readonly error: number;
}

/** Figures of all nodes that answered in time, added up. */
export interface UsageReport {
  readonly minutes: number;
  /** Whose figures are in it. */
  readonly nodes: readonly number[];
  /** Those of the cluster that gave no answer in time: what they counted is missing. */
  readonly silent: readonly number[];
  /** Rules with an answer or a trial in these minutes, by name. */
  readonly rules: readonly ({ readonly rule: string } & UsageCounts)[];
  /** The same by the minute, all these rules together: element i begins i minutes after `fromMillis`, since 1970. */
  readonly history: {
    readonly fromMillis: number;
    /** 99 of 100 answers of that minute took no longer, whatever their rule: the percentile of the slowest node. Null: none was timed. */
    readonly p99Millis?: readonly (number | null)[];
  } & Readonly<Record<UsageOutcome, readonly number[]>>;
  /** Most first; only if keys were asked for. Of the hour under way and the one before, since `fromMillis`. */
  readonly top?: {
    readonly fromMillis: number;
    readonly allowed: readonly TopKey[];
    readonly denied: readonly TopKey[];
  };
}

/** `tooMany`: so many such questions are open that this one is not asked. `starting`: the node is not up yet. */
export const USAGE_FAILURES = {
  starting: 'the node is starting, and knows no other nodes yet',
  tooMany: 'too many questions for usage figures are open; ask again in a second',
} as const;
export type UsageResult =
  | { readonly ok: true; readonly report: UsageReport }
  | { readonly ok: false; readonly reason: keyof typeof USAGE_FAILURES };

/** @throws InvalidFieldError naming the field and its bound */
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
