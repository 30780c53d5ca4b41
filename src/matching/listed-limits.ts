/** Which limits the lists of a request are under, with keys and costs. It asks nobody, and decides nothing. */
import type { Invalid } from '../api/answer.ts';
import type { ListedRequest, ListEntry } from '../api/listed.ts';
import { COST_MAX, LIMITS_PER_REQUEST_MAX } from '../api/request.ts';
import { type StatedRule, statedRuleId } from '../api/stated-rule.ts';
import { keyText } from '../api/key-text.ts';
import type { Unmatched } from '../api/unmatched.ts';
import type { AppliedRule, RuleMatcher } from '../rules/match.ts';
import { statedDefinition } from '../rules/stated-definition.ts';
import { type MatchedLimit, type MatchedLimits, windowsOf } from './matched-limit.ts';

/** What the rules say of one list. `limits`: one for each window; lists that are counted together share them. */
export type MatchedList =
  | { readonly kind: 'free' | 'unlimited' | 'unmatched' }
  | { readonly kind: 'limited'; readonly limits: readonly MatchedLimit[] };

export interface MatchedLists extends MatchedLimits {
  /** In the order of the request. */
  readonly lists: readonly MatchedList[];
  /** Limits that are looked at and not charged: their cost is 0. */
  readonly checks: readonly MatchedLimit[];
  /** Of those to be charged: at costs that no limit has room for, so that nobody need be asked. */
  readonly tooDear: readonly MatchedLimit[];
}

/** A key under a rule. No text of a rule's id has a line in it. */
export function limitId({ ruleId, userId }: Pick<MatchedLimit, 'ruleId' | 'userId'>): string {
  return `${ruleId}\n${userId}`;
}

/** @param unmatched what becomes of lists that no rule is for; of one that is denied, all of its request is */
export function listedLimits(
  matcher: RuleMatcher,
  { domain, lists }: ListedRequest,
  unmatched: Unmatched | undefined,
): MatchedLists | Invalid {
  // What states its limit itself is under no other, and replaces none.
  const asked = lists.map(({ entries, limit }) => (limit === undefined ? entries : []));
  const matching = matcher.matchLists(domain, asked);
  if (matching.kind === 'unkeyed') return unkeyed(`rule '${matching.rule.id}'`);
  const charged = new Map<string, MatchedLimit>();
  const checks = new Map<string, MatchedLimit>();
  const onTrial: (readonly MatchedLimit[])[] = [];
  const matched: MatchedList[] = [];
  let isAnyUnmatched = false;
  for (const [i, list] of lists.entries()) {
    const applied =
      list.limit === undefined ? (matching.applied[i] ?? []) : statedBy(domain, list.entries, list.limit);
    if (applied === 'unkeyed') return unkeyed('the limit of a descriptor');
    const limiting = applied.filter(({ rule }) => !rule.unlimited);
    const isTried = list.cost > 0 && list.cost <= COST_MAX;
    if (isTried) for (const one of limiting) if (one.rule.shadow) onTrial.push(chargesOf(one, list.cost));
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
    return { kind: 'limits', enforced: [], onTrial: [], unmatched, lists: matched, checks: [], tooDear: [] };
  const enforced = [...charged.values()];
  const count = enforced.length + checks.size;
  if (count > LIMITS_PER_REQUEST_MAX)
    return invalid('descriptors', `${count} limits apply; at most ${LIMITS_PER_REQUEST_MAX} may`);
  const tooDear = enforced.filter(({ cost, settle }) => cost > COST_MAX && settle !== true);
  const limits = {
    kind: 'limits',
    enforced,
    onTrial,
    unmatched: isAnyUnmatched ? unmatched : undefined,
  } as const;
  return { ...limits, lists: matched, checks: [...checks.values()], tooDear };
}

/** The limits that charge a list under one rule. Those of a post-paid rule are settled. */
function chargesOf(applied: AppliedRule, cost: number): readonly MatchedLimit[] {
  const limits = windowsOf(applied, cost);
  return applied.rule.postPaid === true ? limits.map((limit) => ({ ...limit, settle: true })) : limits;
}

/** What is counted under one key by one rule is one limit, at the sum of the costs. */
function addTo(known: Map<string, MatchedLimit>, limit: MatchedLimit): MatchedLimit {
  const id = limitId(limit);
  const sum: { cost: number } & MatchedLimit = known.get(id) ?? limit;
  if (sum === limit) known.set(id, limit);
  else sum.cost += limit.cost;
  // No limit denies a settled cost, so it is cut to the most that a request may cost.
  if (limit.settle === true) sum.cost = Math.min(sum.cost, COST_MAX);
  return sum;
}

/** The limit that a list states itself, in shadow or not: counted by its domain and all its descriptors. */
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
  return invalid('descriptors', `what ${what} counts by is too long, or no Unicode`);
}

function invalid(field: string, message: string): Invalid {
  return { kind: 'invalid', field, message };
}
