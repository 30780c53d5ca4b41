/** Sums the usage figures for each rule, and finds the key nearest to the limit of each. Pure. */
import { STATED_RULES, type TopKey, type UsageCounts, type UsageReport } from '../api/usage.ts';
import { type RuleDefinition, windowRuleId } from '../rules/rule-definition.ts';
import { isForUnmatched } from '../rules/unmatched.ts';
import { keyInWords } from '../rules/words.ts';
import { isCounted, type KeyStatus, ruleOfWindow, usedPart, type WindowStatus } from './key-status.ts';

/** The maximum number of keys whose status is read. Each costs one request. */
export const KEYS_ASKED_MAX = 24;

/** Decisions of one rule; the `would` counts are those of a shadow rule. */
export type RuleCounts = Pick<UsageCounts, 'allowed' | 'denied' | 'wouldAllow' | 'wouldDeny'>;
const NOTHING: RuleCounts = { allowed: 0, denied: 0, wouldAllow: 0, wouldDeny: 0 };

/** Sums the counts of all windows of the rule. */
export function countsOf(rule: RuleDefinition, rows: UsageReport['rules']): RuleCounts {
  const ids = new Set(
    isForUnmatched(rule) ? [rule.id] : rule.windows.map((window) => windowRuleId(rule, window)),
  );
  return rows.filter((row) => ids.has(row.rule)).reduce(sumOf, NOTHING);
}

function sumOf(sum: RuleCounts, row: RuleCounts): RuleCounts {
  return {
    allowed: sum.allowed + row.allowed,
    denied: sum.denied + row.denied,
    wouldAllow: sum.wouldAllow + row.wouldAllow,
    wouldDeny: sum.wouldDeny + row.wouldDeny,
  };
}

/** Rules that count by the same key, so that a shadow rule appears next to the enforced rule it may replace. */
export interface RuleGroup {
  /** Heading of the group. */
  readonly words: string;
  /** Enforced rules first, then shadow rules, each in the order of the document. */
  readonly rules: readonly RuleDefinition[];
}

/** Groups rules by what they count. */
export function groupsOf(definitions: readonly RuleDefinition[]): readonly RuleGroup[] {
  const groups = new Map<string, RuleDefinition[]>();
  for (const rule of definitions) {
    const words = isForUnmatched(rule) ? 'Requests that no rule matches' : `Counts ${keyInWords(rule.scope)}`;
    groups.set(words, [...(groups.get(words) ?? []), rule]);
  }
  return [...groups].map(([words, rules]) => ({
    words,
    rules: rules.toSorted((a, b) => Number(a.shadow) - Number(b.shadow)),
  }));
}

/** Rows of usage that belong to no rule in force now. */
export function otherRows(
  rows: UsageReport['rules'],
  definitions: readonly RuleDefinition[],
): UsageReport['rules'] {
  const known = new Set(definitions.filter(isForUnmatched).map(({ id }) => id));
  return rows.filter(({ rule }) => !known.has(rule) && ruleOfWindow(rule, definitions) === undefined);
}

/** The keys with most denials and grants, taken from each rule in turn, at most `KEYS_ASKED_MAX`. */
export function keysToAsk({ top }: Pick<UsageReport, 'top'>): readonly string[] {
  const byRule = new Map<string, TopKey[]>();
  for (const row of [...(top?.denied ?? []), ...(top?.allowed ?? [])]) {
    if (row.rule === STATED_RULES) continue;
    byRule.set(row.rule, [...(byRule.get(row.rule) ?? []), row]);
  }
  const keys = new Set<string>();
  const lists = [...byRule.values()];
  const longest = Math.max(0, ...lists.map(({ length }) => length));
  for (let i = 0; i < longest; i += 1)
    for (const list of lists) {
      const key = list[i]?.key;
      if (key !== undefined && keys.size < KEYS_ASKED_MAX) keys.add(key);
    }
  return [...keys];
}

/** A key and the window in which it is near to the limit. */
export interface Nearest {
  readonly key: string;
  readonly window: WindowStatus;
}

/** By rule id: the key that has used most of the limit. Ties go to the key that waits longest. */
export function nearestOf(
  keyStatuses: readonly KeyStatus[],
  definitions: readonly RuleDefinition[],
): ReadonlyMap<string, Nearest> {
  const nearest = new Map<string, Nearest>();
  for (const { key, limits } of keyStatuses)
    for (const window of limits.filter(isCounted)) {
      const id = ruleOfWindow(window.rule, definitions)?.id;
      if (id === undefined) continue;
      const best = nearest.get(id);
      if (best === undefined || rankOf(window) > rankOf(best.window)) nearest.set(id, { key, window });
    }
  return nearest;
}

/** Sort rank: the used fraction. The wait only breaks ties, so it weighs less than one grant. */
function rankOf(window: WindowStatus): number {
  const { retryAfterMillis = 0, windowMillis } = window;
  return usedPart(window) + retryAfterMillis / (windowMillis * 1e6);
}
