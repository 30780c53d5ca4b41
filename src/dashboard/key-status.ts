/**
 * The status of a key as `GET /v1/keys/{key}` reports it: which limits count the key, and a short verdict in words. Also
 * how often the key was denied, from the usage figures. Pure.
 */
import { USAGE_TOP_MAX, type UsageReport } from '../api/usage.ts';
import { clockTime, wholeNumber, span } from './words.ts';
import { descriptorsIn, GLOBAL_KEY } from '../api/key-text.ts';
import { RuleMatcher } from '../rules/match.ts';
import { type RuleDefinition, windowRuleId } from '../rules/rule-definition.ts';
import { definitionsOfTable } from '../rules/limiter-rules.ts';
import { fits, piecesOf } from '../rules/value-pattern.ts';
import type { KnownRules } from './rules-text.ts';

/** Status of one window of a limit, for a request of cost 1. */
export interface WindowStatus {
  /** The id of the window. */
  readonly rule: string;
  readonly limit: number;
  readonly windowMillis: number;
  readonly remaining: number;
  /** Time until the whole limit is free. */
  readonly resetMillis: number;
  /** Time until the request fits; absent if it fits now or never will. */
  readonly retryAfterMillis?: number;
}

/** Body of `GET /v1/keys/{key}`. */
export interface KeyStatus {
  readonly key: string;
  readonly blocked?: boolean;
  /** On the clock of the partition, like `decided.timeMillis`. */
  readonly blockedUntilMillis?: number;
  readonly unmatched?: boolean;
  readonly decided: { readonly timeMillis: number };
  readonly rulesVersion: number;
  readonly limits: readonly WindowStatus[];
}

/** The rules in force as definitions, even if they were not applied as a document. */
export function definitionsOf({ definitions, rules }: KnownRules): readonly RuleDefinition[] {
  return definitions ?? definitionsOfTable(rules);
}

/** The rule that this window belongs to. */
export function ruleOfWindow(
  windowId: string,
  definitions: readonly RuleDefinition[],
): RuleDefinition | undefined {
  return definitions.find((rule) => rule.windows.some((window) => windowRuleId(rule, window) === windowId));
}

/** Whether the window has counted anything for the key. */
export function isCounted({ remaining, limit, resetMillis }: WindowStatus): boolean {
  return resetMillis > 0 || remaining < limit;
}

/** One window of a key, with its rule. */
export interface KeyLimit extends WindowStatus {
  /** The rule is a shadow rule: it denies nothing. */
  readonly isShadow: boolean;
  /** Further conditions that a request must meet for this rule to count it; empty if there are none. */
  readonly where: string;
}

/** The limits of a key, sorted by whether they apply to it. */
export interface KeyLimits {
  /** Limits that count the key, or would count its next request. First the denying ones, then the fullest. */
  readonly counting: readonly KeyLimit[];
  /** Limits that have counted nothing and whose conditions concern descriptors that the key does not have. */
  readonly others: readonly KeyLimit[];
  /** Rules that exempt the key from limits. */
  readonly unlimited: readonly RuleDefinition[];
}

/**
 * Sorts the limits of a key by whether they apply to it.
 *
 * @param tier of the customer that the key belongs to, if known
 */
export function limitsOfKey(
  { key, limits }: KeyStatus,
  definitions: readonly RuleDefinition[],
  tier?: string,
): KeyLimits {
  const said = new Map(key === GLOBAL_KEY ? [] : descriptorsIn(key));
  if (tier !== undefined) said.set('tier', tier);
  const matching = new RuleMatcher(definitions).match(said);
  const applied = new Set(matching.kind === 'rules' ? matching.applied.map(({ rule }) => rule) : []);
  const counting: KeyLimit[] = [];
  const others: KeyLimit[] = [];
  for (const limit of limits) {
    const rule = ruleOfWindow(limit.rule, definitions);
    if (rule !== undefined && excludes(rule, said)) continue;
    const shown = { ...limit, isShadow: rule?.shadow === true, where: whereOf(rule, said) };
    const isForKey =
      rule === undefined || rule.scope.kind === 'path' || applied.has(rule) || isCounted(limit);
    (isForKey ? counting : others).push(shown);
  }
  return {
    counting: counting.sort((a, b) => urgencyOf(b) - urgencyOf(a)),
    others,
    unlimited: [...applied].filter((rule) => rule.unlimited),
  };
}

/** Whether a condition excludes the key. An `ip` condition never does: the key holds a network, not the address. */
function excludes({ scope }: RuleDefinition, said: ReadonlyMap<string, string>): boolean {
  if (scope.kind === 'path') return false;
  return scope.conditions.some(({ name, value }) => {
    const known = name === 'ip' ? undefined : said.get(name);
    return known !== undefined && !fits(piecesOf(value), known);
  });
}

function whereOf(rule: RuleDefinition | undefined, said: ReadonlyMap<string, string>): string {
  if (rule === undefined || rule.scope.kind === 'path') return '';
  const open = rule.scope.conditions.filter(({ name }) => !said.has(name));
  return open.map(({ name, value }) => `${name} is ${value}`).join(' and ');
}

/** Sort rank: the used fraction of the limit. Denying limits rank above all others, longest wait first. */
function urgencyOf(limit: KeyLimit): number {
  if (denies(limit)) return 2 + (limit.retryAfterMillis ?? Number.MAX_SAFE_INTEGER);
  return limit.isShadow ? -1 : usedPart(limit);
}

/** The used fraction of the limit, 0 to 1. */
export function usedPart({ limit, remaining }: WindowStatus): number {
  return limit === 0 ? 1 : Math.min(1, Math.max(0, 1 - remaining / limit));
}

/** Whether a request of cost 1 would not fit. */
export function isFull({ limit, retryAfterMillis }: WindowStatus): boolean {
  return limit === 0 || retryAfterMillis !== undefined;
}

function denies(limit: KeyLimit): boolean {
  return isFull(limit) && !limit.isShadow;
}

/** The answer that a request of the key would get now. `noRule`: no rule limits it. */
export type Verdict = 'blocked' | 'denied' | 'counted' | 'nothing' | 'noRule';

/** The verdict on the key, and one short sentence about it. */
export function verdictOn(
  keyStatus: KeyStatus,
  { counting, unlimited }: KeyLimits,
): { readonly verdict: Verdict; readonly words: string } {
  if (keyStatus.blocked === true) return { verdict: 'blocked', words: `blocked${blockEnd(keyStatus)}` };
  if (keyStatus.unmatched === true) return { verdict: 'denied', words: 'denied: no rule matches it' };
  const [worst] = counting;
  if (worst === undefined)
    return unlimited.length > 0
      ? { verdict: 'noRule', words: `no limit, by rule ${unlimited[0]?.id ?? ''}` }
      : { verdict: 'noRule', words: 'no rule counts it' };
  const { rule, limit, remaining, retryAfterMillis } = worst;
  if (denies(worst))
    return {
      verdict: 'denied',
      words:
        retryAfterMillis === undefined
          ? `denied by ${rule}, whose limit is 0`
          : `denied by ${rule} for ${span(retryAfterMillis)}`,
    };
  const left = `${wholeNumber(remaining)} of ${wholeNumber(limit)} left under ${rule}`;
  return counting.some(isCounted)
    ? { verdict: 'counted', words: left }
    : { verdict: 'nothing', words: `nothing counted; ${left}` };
}

/** Such as `, for 3 min more`; empty if the block has no end. */
function blockEnd({ blockedUntilMillis, decided }: KeyStatus): string {
  return blockedUntilMillis === undefined
    ? ''
    : `, for ${span(Math.max(0, blockedUntilMillis - decided.timeMillis))} more`;
}

/** One sentence for each rule that denied the key. If no rule is listed, says what that means. */
export function denialsInWords(key: string, { top }: UsageReport): readonly string[] {
  if (top === undefined)
    return ['Denials by key are shown to tokens only. In an open cluster, ask on the machine of the node.'];
  const since = `since ${clockTime(top.fromMillis)}`;
  const denied = top.denied.filter((row) => row.key === key);
  if (denied.length > 0)
    return denied.map(({ rule, count, error }) => {
      const times =
        error === 0 ? wholeNumber(count) : `${wholeNumber(count - error)} to ${wholeNumber(count)}`;
      return `${times} denied by ${rule} ${since}`;
    });
  // The list holds the keys with the most denials, so any other key has fewer.
  if (top.denied.length < USAGE_TOP_MAX) return [`No denial was counted ${since}.`];
  const least = Math.min(...top.denied.map(({ count }) => count));
  return [
    `At most ${wholeNumber(least)} requests were denied by any rule ${since}: the key is not among the ${USAGE_TOP_MAX} denied most.`,
  ];
}
