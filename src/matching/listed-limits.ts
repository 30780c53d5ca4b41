/**
 * Finds the limits of a request that consists of lists of descriptors (as gateways send it), with keys and costs.
 * Pure functions.
 */
import type { Invalid } from '../api/answer.ts';
import type { ListedRequest, ListEntry } from '../api/listed.ts';
import { COST_MAX, LIMITS_PER_REQUEST_MAX } from '../api/request.ts';
import { type StatedRule, statedRuleId } from '../api/stated-rule.ts';
import { keyText } from '../api/key-text.ts';
import type { Unmatched } from '../api/refusals.ts';
import type { AppliedRule, RuleMatcher } from '../rules/match.ts';
import { statedDefinition } from '../rules/limiter-rules.ts';
import { type MatchedLimit, type MatchedLimits, windowsOf } from './matched-limit.ts';

/**
 * What the rules say about one list. `limits` has one entry for each window; lists with the same key and rule
 * have the same entry.
 */
export type MatchedList =
  | { readonly kind: 'free' | 'unlimited' | 'unmatched' }
  | { readonly kind: 'limited'; readonly limits: readonly MatchedLimit[] };

/** The limits of a whole request of lists. */
export interface MatchedLists extends MatchedLimits {
  /** One entry for each list, in the order of the request. */
  readonly lists: readonly MatchedList[];
  /** Limits of lists with cost 0: they are peeked at and not charged. */
  readonly checks: readonly MatchedLimit[];
  /** The limits in `enforced` whose cost is above the maximum: the request is denied without asking anybody. */
  readonly tooExpensive: readonly MatchedLimit[];
}

/** Identifies a limit: a rule id and a key. A rule id never contains a line break. */
export function limitId({ ruleId, userId }: Pick<MatchedLimit, 'ruleId' | 'userId'>): string {
  return `${ruleId}\n${userId}`;
}

/**
 * Finds the limits of all lists. Errors name the field `descriptors`: a key that is too long or not Unicode, or
 * more than `LIMITS_PER_REQUEST_MAX` limits.
 *
 * @param unmatched what the rules do with lists that no rule matches. If one list is denied so, the whole request
 *   is.
 */
export function listedLimits(
  matcher: RuleMatcher,
  { domain, lists }: ListedRequest,
  unmatched: Unmatched | undefined,
): MatchedLists | Invalid {
  // A list that states its own limit is under no rule, and replaces none.
  const asked = lists.map(({ entries, limit }) => (limit === undefined ? entries : []));
  const matching = matcher.matchLists(domain, asked);
  if (matching.kind === 'unkeyed') return unkeyed(`rule '${matching.rule.id}'`);
  const charged = new Map<string, MatchedLimit>();
  const checks = new Map<string, MatchedLimit>();
  const shadowed: (readonly MatchedLimit[])[] = [];
  const matched: MatchedList[] = [];
  let isAnyUnmatched = false;
  for (const [i, list] of lists.entries()) {
    const applied =
      list.limit === undefined ? (matching.applied[i] ?? []) : statedBy(domain, list.entries, list.limit);
    if (applied === 'unkeyed') return unkeyed('the limit stated by a descriptor');
    const limiting = applied.filter(({ rule }) => !rule.unlimited);
    const isTried = list.cost > 0 && list.cost <= COST_MAX;
    if (isTried) for (const one of limiting) if (one.rule.shadow) shadowed.push(chargesOf(one, list.cost));
    const isUnmatched = list.limit === undefined && matching.areMatched[i] === false;
    isAnyUnmatched ||= isUnmatched;
    const enforced = limiting.filter(({ rule }) => !rule.shadow);
    if (enforced.length === 0) {
      const isUnlimited = applied.some(({ rule }) => rule.unlimited && rule.whitelisted !== true);
      const kind = isUnmatched && unmatched === 'deny' ? 'unmatched' : 'free';
      matched.push({ kind: isUnlimited ? 'unlimited' : kind });
      continue;
    }
    const known = list.cost === 0 ? checks : charged;
    const limits = enforced.flatMap((one) => chargesOf(one, list.cost).map((limit) => addTo(known, limit)));
    matched.push({ kind: 'limited', limits });
  }
  if (isAnyUnmatched && unmatched === 'deny')
    return {
      kind: 'limits',
      enforced: [],
      shadowed: [],
      unmatched,
      lists: matched,
      checks: [],
      tooExpensive: [],
    };
  const enforced = [...charged.values()];
  const count = enforced.length + checks.size;
  if (count > LIMITS_PER_REQUEST_MAX)
    return invalid('descriptors', `${count} limits apply; at most ${LIMITS_PER_REQUEST_MAX} may`);
  const tooExpensive = enforced.filter(({ cost, settle }) => cost > COST_MAX && settle !== true);
  const limits = {
    kind: 'limits',
    enforced,
    shadowed,
    unmatched: isAnyUnmatched ? unmatched : undefined,
  } as const;
  return { ...limits, lists: matched, checks: [...checks.values()], tooExpensive };
}

/**
 * The limits that charge one list under one rule. Limits of a post-paid rule are settled: charged, never denied.
 */
function chargesOf(applied: AppliedRule, cost: number): readonly MatchedLimit[] {
  const limits = windowsOf(applied, cost);
  return applied.rule.postPaid === true ? limits.map((limit) => ({ ...limit, settle: true })) : limits;
}

/** Adds a limit. Lists with the same key and rule are one limit, at the sum of their costs. */
function addTo(known: Map<string, MatchedLimit>, limit: MatchedLimit): MatchedLimit {
  const id = limitId(limit);
  const sum: { cost: number } & MatchedLimit = known.get(id) ?? limit;
  if (sum === limit) known.set(id, limit);
  else sum.cost += limit.cost;
  // No limit denies a settled cost, so the sum is only cut to the allowed maximum.
  if (limit.settle === true) sum.cost = Math.min(sum.cost, COST_MAX);
  return sum;
}

/**
 * The limit that a list states itself, in shadow or not. It counts by the domain and all descriptors of the list.
 */
function statedBy(
  domain: string,
  entries: readonly ListEntry[],
  { limit, windowMillis }: StatedRule,
): readonly AppliedRule[] | 'unkeyed' {
  const key = keyText([['domain', domain], ...entries.map(({ key, value }) => [key, value] as const)]);
  if (key === undefined) return 'unkeyed';
  return [{ rule: statedDefinition(statedRuleId(limit, windowMillis)), key, cost: 1 }];
}

function unkeyed(what: string): Invalid {
  return invalid('descriptors', `the key of ${what} is too long or is not valid Unicode`);
}

function invalid(field: string, message: string): Invalid {
  return { kind: 'invalid', field, message };
}
