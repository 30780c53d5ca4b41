/** How a key stands, as `GET /v1/keys/{key}` reports it: which of its limits count it, and all of it in a few words. Pure. */
import { descriptorsIn, GLOBAL_KEY } from '../api/key-text.ts';
import { RuleMatcher } from '../rules/match.ts';
import type { RuleDefinition } from '../rules/rule-definition.ts';
import { definitionsOfTable } from '../rules/table-form.ts';
import { fits, piecesOf } from '../rules/value-pattern.ts';
import { windowRuleId } from '../rules/window-id.ts';
import type { KnownRules } from './rules-text.ts';
import { span, wholeNumber } from './words.ts';

/** One window, for a request of cost 1. */
export interface WindowStanding {
  /** The id of the window. */
  readonly rule: string;
  readonly limit: number;
  readonly windowMillis: number;
  readonly remaining: number;
  /** Until the whole limit is free. */
  readonly resetMillis: number;
  /** Until the request fits; absent: it does now, or never. */
  readonly retryAfterMillis?: number;
}

export interface KeyStanding {
  readonly key: string;
  readonly blocked?: boolean;
  /** Group time, as `decided.timeMillis` is. */
  readonly blockedUntilMillis?: number;
  readonly unmatched?: boolean;
  readonly decided: { readonly timeMillis: number };
  readonly rulesVersion: number;
  readonly limits: readonly WindowStanding[];
}

export function definitionsOf({ definitions, rules }: KnownRules): readonly RuleDefinition[] {
  return definitions ?? definitionsOfTable(rules);
}

/** The rule that has a window under this id. */
export function ruleOfWindow(
  windowId: string,
  definitions: readonly RuleDefinition[],
): RuleDefinition | undefined {
  return definitions.find((rule) => rule.windows.some((window) => windowRuleId(rule, window) === windowId));
}

/** A window in which something of the key is counted. */
export function isCounted({ remaining, limit, resetMillis }: WindowStanding): boolean {
  return resetMillis > 0 || remaining < limit;
}

/** One window of a key, with its rule. */
export interface KeyLimit extends WindowStanding {
  /** It denies nothing. */
  readonly isShadow: boolean;
  /** What else a request must be for this rule to count it; empty: nothing. */
  readonly where: string;
}

export interface KeyLimits {
  /** Of rules that count the key, or would count its next request: those that deny it first, then the nearest to the limit. */
  readonly counting: readonly KeyLimit[];
  /** Of rules that count such keys under conditions of which the key says nothing, and have counted nothing. */
  readonly others: readonly KeyLimit[];
  /** The rules by which it has no limit. */
  readonly unlimited: readonly RuleDefinition[];
}

/** @param tier of the customer that the key is of, if it is known */
export function limitsOfKey(
  { key, limits }: KeyStanding,
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

/** A condition on what the key says does not hold: the rule never counts it. Of networks the key says less than an address. */
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

/** The part of the limit that is used; above that what denies, the longest last. */
function urgencyOf(limit: KeyLimit): number {
  if (denies(limit)) return 2 + (limit.retryAfterMillis ?? Number.MAX_SAFE_INTEGER);
  return limit.isShadow ? -1 : usedPart(limit);
}

/** 0 to 1. */
export function usedPart({ limit, remaining }: WindowStanding): number {
  return limit === 0 ? 1 : Math.min(1, Math.max(0, 1 - remaining / limit));
}

/** A request of cost 1 does not fit. */
export function isFull({ limit, retryAfterMillis }: WindowStanding): boolean {
  return limit === 0 || retryAfterMillis !== undefined;
}

function denies(limit: KeyLimit): boolean {
  return isFull(limit) && !limit.isShadow;
}

export type Verdict = 'blocked' | 'denied' | 'counted' | 'nothing' | 'noRule';

/** How the key stands, worst first, and in words. */
export function verdictOn(
  standing: KeyStanding,
  { counting, unlimited }: KeyLimits,
): { readonly verdict: Verdict; readonly words: string } {
  if (standing.blocked === true) return { verdict: 'blocked', words: `blocked${blockEnd(standing)}` };
  if (standing.unmatched === true) return { verdict: 'denied', words: 'denied: no rule is for it' };
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

/** As `, for 3 min more`; empty: the block has no end. */
function blockEnd({ blockedUntilMillis, decided }: KeyStanding): string {
  return blockedUntilMillis === undefined
    ? ''
    : `, for ${span(Math.max(0, blockedUntilMillis - decided.timeMillis))} more`;
}
