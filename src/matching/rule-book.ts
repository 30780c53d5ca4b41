/** The rules of one version, made ready to find the limits that a request is under. It asks nobody, and decides nothing. */
import type { Invalid, Unavailable } from '../api/answer.ts';
import type { DescribedRequest } from '../api/described.ts';
import type { ListedRequest } from '../api/listed.ts';
import { COST_MAX, LIMITS_PER_REQUEST_MAX } from '../api/request.ts';
import { windowRuleId } from '../rules/compile.ts';
import { CUSTOMER } from './customer-cache.ts';
import { RuleMatcher } from '../rules/match.ts';
import type { RuleDefinition } from '../rules/rule-definition.ts';
import { listedLimits, type MatchedLists } from './listed-limits.ts';
import { type MatchedLimits, windowsOf } from './matched-limit.ts';
import { RULES_CHANGED } from './refused-here.ts';

export class RuleBook {
  readonly version: number;
  /** A rule refuses what nobody can decide. */
  readonly isClosed: boolean;
  readonly #matcher: RuleMatcher;
  /** By the ids that the limiter keeps them under, of the rules that count by customer alone. */
  readonly #byCustomer: ReadonlyMap<string, RuleDefinition>;

  /** @param version of the rule table that was made of the definitions */
  constructor(version: number, definitions: readonly RuleDefinition[]) {
    this.version = version;
    this.isClosed = definitions.some(
      ({ enabled, unlimited, failMode }) => enabled && !unlimited && failMode === 'closed',
    );
    this.#matcher = new RuleMatcher(definitions);
    this.#byCustomer = new Map(
      definitions
        .filter(countsByCustomer)
        .flatMap((rule) => rule.windows.map((_, place) => [windowRuleId(rule, place), rule] as const)),
    );
  }

  /** The rule that counts by customer alone and has a window under this id. */
  ruleByCustomer(ruleId: string): RuleDefinition | undefined {
    return this.#byCustomer.get(ruleId);
  }

  limitsFor({
    descriptors,
    cost = 1,
  }: Pick<DescribedRequest, 'descriptors' | 'cost'>): MatchedLimits | Invalid {
    const matching = this.#matcher.match(descriptors);
    if (matching.kind === 'unkeyed')
      return invalid('descriptors', `what rule '${matching.rule.id}' counts by is too long, or no Unicode`);
    const limiting = matching.applied.filter(({ rule }) => !rule.unlimited);
    const enforced = limiting.filter(({ rule }) => !rule.shadow).flatMap((rule) => windowsOf(rule, cost));
    if (enforced.length > LIMITS_PER_REQUEST_MAX)
      return invalid('descriptors', `${enforced.length} limits apply; at most ${LIMITS_PER_REQUEST_MAX} may`);
    const tooDear = enforced.find((limit) => limit.cost > COST_MAX);
    if (tooDear !== undefined)
      return invalid('cost', `cost must be at most ${COST_MAX} after rule '${tooDear.ruleId}' multiplies it`);
    const onTrial = limiting
      .filter(({ rule }) => rule.shadow)
      .map((rule) => windowsOf(rule, cost))
      .filter((windows) => windows.every((limit) => limit.cost <= COST_MAX));
    return { kind: 'limits', enforced, onTrial };
  }

  listsFor(request: ListedRequest): MatchedLists | Invalid {
    return listedLimits(this.#matcher, request);
  }

  /** What is too dear is denied before anybody is asked for a grant: only other rules can have found that by now. */
  chargeableListsFor(request: ListedRequest): MatchedLists | Invalid | Unavailable {
    const lists = this.listsFor(request);
    return lists.kind === 'limits' && lists.tooDear.length > 0 ? RULES_CHANGED : lists;
  }
}

function countsByCustomer({ scope, enabled }: RuleDefinition): boolean {
  if (!enabled || scope.kind !== 'descriptors') return false;
  const [only, ...others] = scope.key;
  return only?.name === CUSTOMER && others.length === 0;
}

function invalid(field: string, message: string): Invalid {
  return { kind: 'invalid', field, message };
}
