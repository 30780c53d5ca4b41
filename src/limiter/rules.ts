/**
 * The rule table that the log carries, its bounds and its validation; and rules that a request states itself. Plain
 * data; it decides nothing.
 */

import { isBoundedInteger, isBoundedText } from '../api/bounded.ts';
import { RULE_ID_BYTES_MAX } from '../api/request.ts';
import { isStatedId, parseStatedRule, parseStatedThrottle } from '../api/stated-rule.ts';
import {
  GRANULARITY_MILLIS_MAX,
  LIMIT_MAX,
  limitMaxOf,
  type Rule,
  RULE_CLOCKS,
  RULE_METERS,
  type RuleMeter,
  WINDOW_MILLIS_MAX,
} from '../api/rule.ts';

/** Means "the default rule at the time of the decision". Used where a request names no rule. */
export const DEFAULT_RULE = '';
/** The maximum number of rules in a table. */
export const RULES_MAX = 1024;
/** How far ahead of group time a caller's timestamp may be; a listener refuses what is further ahead. */
export const MAX_AHEAD_MILLIS_DEFAULT = 60_000;
/** How long request ids are remembered if the table does not say, in milliseconds of group time. */
export const REQUEST_ID_HORIZON_MILLIS_DEFAULT = 120_000;
export const REQUEST_ID_HORIZON_MILLIS_MAX = 86_400_000;
/** How much a partition remembers, in bytes by the model of `StateSize`, if the table does not say otherwise. */
export const PARTITION_BYTES_DEFAULT = 256 << 20;
export const PARTITION_BYTES_MIN = 4_096;
export const PARTITION_BYTES_MAX = 4 * 2 ** 30;
/** The most that `adjtime` slews a clock by. The other nodes detect a system that slews faster. */
export const CLOCK_DRIFT_PPM_DEFAULT = 500;
/** Keeps the widened 31-day window within the 32-bit offsets of a sliding log. */
export const CLOCK_DRIFT_PPM_MAX = 100_000;

/** All rules of a cluster and the settings that every replica must agree on. */
export interface RuleTable {
  /** A safe integer >= 1. A table replaces another only when its version is greater. */
  readonly version: number;
  /** 1 to `RULES_MAX` rules with distinct ids. The first one is the default. */
  readonly rules: readonly Rule[];
  /** How long after a grant its request id gets the same answer again, in milliseconds of group time. */
  readonly requestIdHorizonMillis: number;
  /** Largest difference between the rates of two machines' clocks, in parts per million. */
  readonly clockDriftPpm: number;
  /**
   * How much a partition may remember, in bytes by the model of `StateSize`. Beyond that no grant is made to a new user
   * or under a new request id.
   */
  readonly partitionBytesMax: number;
}

/** A rule or rule table is not acceptable. `field` names the wrong field, e.g. `rules[2].limit`. */
export class InvalidRuleError extends RangeError {
  override readonly name = 'InvalidRuleError';
  readonly code = 'INVALID_RULE';
  readonly field: string;

  constructor(field: string, bound: string, value: unknown) {
    super(`${field} must be ${bound}, but is ${printable(value)}`);
    this.field = field;
  }
}

/**
 * Checks a rule table from a file, a request or a log entry. Returns a fresh copy with defaults filled in (`clock` is
 * `request` if absent). Fields of a meter that merely state its default are dropped. A rule with an unknown field is
 * refused.
 *
 * @throws InvalidRuleError naming the first field that is out of bounds
 * @example validateRuleTable({ version: 1, rules: [{ id: 'default', limit: 100, windowMillis: 60_000 }] })
 */
export function validateRuleTable(value: unknown): RuleTable {
  const table = fieldsOf(value, 'table');
  const rules = table['rules'];
  if (!Array.isArray(rules) || rules.length === 0 || rules.length > RULES_MAX) {
    throw new InvalidRuleError('rules', `an array of 1 to ${RULES_MAX} rules`, rules);
  }
  const checked = rules.map((rule: unknown, i) => validateRule(rule, `rules[${i}]`));
  const seen = new Set<string>();
  for (const [i, { id }] of checked.entries()) {
    if (seen.has(id)) throw new InvalidRuleError(`rules[${i}].id`, 'unique in the table', id);
    seen.add(id);
  }
  return {
    version: integer(table['version'], 'version', 1, Number.MAX_SAFE_INTEGER),
    rules: checked,
    requestIdHorizonMillis: integer(
      table['requestIdHorizonMillis'] ?? REQUEST_ID_HORIZON_MILLIS_DEFAULT,
      'requestIdHorizonMillis',
      0,
      REQUEST_ID_HORIZON_MILLIS_MAX,
    ),
    clockDriftPpm: integer(
      table['clockDriftPpm'] ?? CLOCK_DRIFT_PPM_DEFAULT,
      'clockDriftPpm',
      0,
      CLOCK_DRIFT_PPM_MAX,
    ),
    partitionBytesMax: integer(
      table['partitionBytesMax'] ?? PARTITION_BYTES_DEFAULT,
      'partitionBytesMax',
      PARTITION_BYTES_MIN,
      PARTITION_BYTES_MAX,
    ),
  };
}

/**
 * How much faster than real time a leader's clock may run, in parts per million. A node whose clock differs from those
 * of a majority by more than `clockDriftPpm` detects it and stops leading (src/clock/). The clocks of the majority are
 * assumed to be within a fifth of that of real time: at 500 ppm this is four times the error of an uncorrected quartz.
 */
function leaderDriftPpm(clockDriftPpm: number): number {
  return clockDriftPpm + Math.ceil(clockDriftPpm / 5);
}

/** The window to use between two timestamps of group time, in milliseconds, so that the limit holds in real time. */
export function effectiveWindowMillis(rule: Rule, clockDriftPpm: number): number {
  return groupMillisMax(rule.windowMillis, clockDriftPpm);
}

/**
 * The largest difference between the group times of two events that are `realMillis` apart in real time.
 *
 * The drift covers machines whose clocks run at different rates. The last millisecond covers rounding: timestamps are
 * rounded down to whole milliseconds, so a grant made at 1.9 is stamped 1 and a request made at 2.0 is stamped 2.
 * Timestamps can therefore lie one millisecond further apart than the events.
 */
export function groupMillisMax(realMillis: number, clockDriftPpm: number): number {
  // One exact integer product (< 2^53) before the division, because 1 + ppm / 1e6 would be rounded already.
  return Math.ceil((realMillis * (1_000_000 + leaderDriftPpm(clockDriftPpm))) / 1_000_000) + 1;
}

/**
 * Checks one rule of a table. `path` names it in errors.
 *
 * Ids in the form of stated rules are refused. The keys of a stated rule are dropped with the last of them, which is
 * safe because a stated rule accepts no caller's timestamps. A table rule with that id and the callers' clock would
 * lose its grants.
 *
 * @throws InvalidRuleError
 */
export function validateRule(value: unknown, path: string): Rule {
  const rule = validateAnyRule(value, path);
  const unknown = Object.keys(value as object).find((field) => !RULE_FIELDS.includes(field));
  if (unknown !== undefined) {
    const bound = `absent: the fields of a rule are ${RULE_FIELDS.join(', ')}`;
    throw new InvalidRuleError(`${path}.${unknown}`, bound, (value as Record<string, unknown>)[unknown]);
  }
  if (!isStatedId(rule.id)) return rule;
  const bound =
    'of another form than LIMIT/MILLISms and COUNT/MILLISms+BURST, which are reserved for rules that requests state';
  throw new InvalidRuleError(`${path}.id`, bound, rule.id);
}

/** Like `validateRule`, but also accepts stated rules, because snapshots contain them. @throws InvalidRuleError */
export function validateAnyRule(value: unknown, path: string): Rule {
  const rule = fieldsOf(value, path);
  const id = rule['id'];
  if (!isBoundedText(id, RULE_ID_BYTES_MAX)) {
    throw new InvalidRuleError(`${path}.id`, `text of 1 to ${RULE_ID_BYTES_MAX} bytes`, id);
  }
  const of = rule['of'];
  if (of !== undefined && !(typeof of === 'string' && of !== '' && isWindowOf(id, of))) {
    throw new InvalidRuleError(`${path}.of`, `the part of the id before its last /`, of);
  }
  const named = rule['clock'] ?? 'request';
  const clock = RULE_CLOCKS.find((one) => one === named);
  if (clock === undefined) throw new InvalidRuleError(`${path}.clock`, `'request' or 'cluster'`, named);
  const meter = meterOf(rule, path);
  const limit = integer(rule['limit'], `${path}.limit`, 0, limitMaxOf(meter));
  const windowMillis = integer(rule['windowMillis'], `${path}.windowMillis`, 1, WINDOW_MILLIS_MAX);
  const fields = meterFields(rule, { path, meter, limit, windowMillis });
  return { id, ...(of !== undefined && { of }), limit, windowMillis, clock, ...fields };
}

function isWindowOf(id: string, of: string): boolean {
  return id.lastIndexOf('/') === of.length && id.startsWith(of) && id.length > of.length + 1;
}

/** Which fields belong to which meter. All of them are optional. */
const FIELDS_OF_METER: Readonly<Record<RuleMeter, readonly (keyof Rule)[]>> = {
  slidingLog: ['granularityMillis'],
  slidingCounter: [],
  fixedWindow: ['calendar'],
  tokenBucket: ['burst'],
  leakyBucket: ['burst', 'queue'],
};
const METER_FIELDS = ['granularityMillis', 'calendar', 'burst', 'queue'] as const;
const RULE_FIELDS: readonly string[] = [
  'id',
  'of',
  'limit',
  'windowMillis',
  'clock',
  'meter',
  ...METER_FIELDS,
];

interface Limits {
  readonly path: string;
  readonly meter: RuleMeter;
  readonly limit: number;
  readonly windowMillis: number;
}

type MeterFields = Pick<Rule, 'meter' | (typeof METER_FIELDS)[number]>;

function meterOf(rule: Record<string, unknown>, path: string): RuleMeter {
  const named = rule['meter'] ?? RULE_METERS[0];
  const meter = RULE_METERS.find((one) => one === named);
  if (meter !== undefined) return meter;
  throw new InvalidRuleError(`${path}.meter`, `one of ${RULE_METERS.join(', ')}`, named);
}

function meterFields(
  rule: Record<string, unknown>,
  { path, meter, limit, windowMillis }: Limits,
): MeterFields {
  for (const field of METER_FIELDS) {
    if (rule[field] === undefined || FIELDS_OF_METER[meter].includes(field)) continue;
    throw new InvalidRuleError(`${path}.${field}`, `absent from a rule with the meter ${meter}`, rule[field]);
  }
  const optional = (field: keyof Rule, min: number, max: number): number | undefined =>
    rule[field] === undefined ? undefined : integer(rule[field], `${path}.${field}`, min, max);
  const granularityMillis = optional('granularityMillis', 1, Math.min(windowMillis, GRANULARITY_MILLIS_MAX));
  const burst = optional('burst', 1, LIMIT_MAX);
  const queue = optional('queue', 0, LIMIT_MAX - (burst ?? limit));
  return {
    ...(meter !== RULE_METERS[0] && { meter }),
    ...(granularityMillis !== undefined && granularityMillis > 1 && { granularityMillis }),
    ...(isByMonth(rule, path, windowMillis) && { calendar: 'month' as const }),
    ...(burst !== undefined && { burst }),
    ...(queue !== undefined && queue > 0 && { queue }),
  };
}

function isByMonth(rule: Record<string, unknown>, path: string, windowMillis: number): boolean {
  const calendar = rule['calendar'];
  if (calendar === undefined) return false;
  if (calendar !== 'month') throw new InvalidRuleError(`${path}.calendar`, `'month'`, calendar);
  if (windowMillis === WINDOW_MILLIS_MAX) return true;
  const bound = `${WINDOW_MILLIS_MAX}, the length of the longest month`;
  throw new InvalidRuleError(`${path}.windowMillis`, bound, windowMillis);
}

function integer(value: unknown, field: string, min: number, max: number): number {
  if (!isBoundedInteger(value, min, max)) {
    throw new InvalidRuleError(field, `an integer from ${min} to ${max}`, value);
  }
  return value;
}

function fieldsOf(value: unknown, field: string): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new InvalidRuleError(field, 'an object', value);
  }
  return Object.fromEntries(Object.entries(value));
}

function printable(value: unknown): string {
  if (typeof value === 'string') return `'${value.slice(0, 64)}'`;
  if (typeof value === 'object' && value !== null) {
    return Array.isArray(value) ? `an array of ${value.length}` : 'an object';
  }
  return String(value);
}

/**
 * The number of stated windows under which one key can have grants at a time; one more is refused as `at_capacity`.
 * Callers choose the numbers, so a caller that chooses many fills up only its own key. A request with several limits is
 * checked once per limit and may exceed this by as many.
 */
export const STATED_WINDOWS_PER_KEY_MAX = 64;

/**
 * The rule that a request states itself in the rule id, e.g. `100/60000ms`; nobody configured it. Undefined if the id
 * is an ordinary name.
 */
export function statedRule(ruleId: string): Rule | undefined {
  // Always the cluster's clock: with a timestamp of its own a caller could make nothing count. For that, configure a
  // rule.
  const stated = parseStatedRule(ruleId);
  if (stated !== undefined) return { id: ruleId, ...stated, clock: 'cluster' };
  const throttle = parseStatedThrottle(ruleId);
  if (throttle === undefined) return undefined;
  const { count: limit, periodMillis: windowMillis, maxBurst } = throttle;
  return { id: ruleId, limit, windowMillis, clock: 'cluster', meter: 'tokenBucket', burst: maxBurst + 1 };
}

/** Is it a stated throttle? All throttles of one key share one bucket, though each call may name other numbers. */
export function isThrottle({ id, meter }: Rule): boolean {
  return meter === 'tokenBucket' && parseStatedThrottle(id) !== undefined;
}
