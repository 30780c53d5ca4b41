/** The rules of one version, made ready to find the limits that a request is under. It asks nobody, and decides nothing. */
import type { Invalid, Unavailable } from '../api/answer.ts';
import { type Descriptors, USER } from '../api/descriptors.ts';
import type { Question } from '../api/question.ts';
import { isStatedId } from '../api/stated-rule.ts';
import type { ListedRequest } from '../api/listed.ts';
import { COST_MAX, LIMITS_PER_REQUEST_MAX, USER_ID_BYTES_MAX } from '../api/request.ts';
import type { Unmatched } from '../api/unmatched.ts';
import { CUSTOMER } from './customer-cache.ts';
import { type Matching, RuleMatcher } from '../rules/match.ts';
import { descriptorsIn, GLOBAL_KEY, partNamesIn, userKey } from '../api/key-text.ts';
import { statedDefinition } from '../rules/stated-definition.ts';
import { partName, type RuleDefinition, type Scope } from '../rules/rule-definition.ts';
import { unmatchedIn } from '../rules/unmatched.ts';
import { listedLimits, type MatchedLists } from './listed-limits.ts';
import { type MatchedLimit, type MatchedLimits, windowIdsOf, windowsOf } from './matched-limit.ts';
import { RULES_CHANGED } from './node-refusals.ts';

/** Stated rules that are remembered, ready to be matched. */
const STATED_MAX = 256;
/** A key escapes these characters of a user's id. */
const ESCAPED = /[%,]/;

/** Stands for any. */
const ANY_USER: Descriptors = new Map([[USER, USER]]);

/** The limits of a request of cost 1 that names only its user, and the highest cost by which they may be multiplied. */
interface OfAnyUser {
  readonly limits: MatchedLimits;
  /** The limit, if there is exactly one and it is enforced. */
  readonly only: MatchedLimit | undefined;
  readonly costMax: number;
}

export class RuleBook {
  readonly version: number;
  /** A rule refuses what nobody can decide. */
  readonly isClosed: boolean;
  /** What becomes of requests that no rule is for. Undefined: they are let through. */
  readonly unmatched: Unmatched | undefined;
  readonly #matcher: RuleMatcher;
  readonly #definitions: readonly RuleDefinition[];
  readonly #ids: ReadonlySet<string>;
  /** No limit depends on who the user is. */
  readonly #isForAnyUser: boolean;
  /** By the rule that is asked for: what a request that names only its user is under, found when one comes. */
  readonly #ofAnyUser = new Map<string | undefined, OfAnyUser | undefined>();
  readonly #stated = new Map<string, RuleDefinition>();
  /** By the ids that the limiter keeps them under, of the rules that count by customer alone. */
  readonly #byCustomer: ReadonlyMap<string, RuleDefinition>;

  /** @param version of the rule table that was made of the definitions */
  constructor(version: number, definitions: readonly RuleDefinition[]) {
    this.version = version;
    this.unmatched = unmatchedIn(definitions);
    this.isClosed = definitions.some(
      ({ enabled, unlimited, unmatched, failMode }) =>
        enabled && !unlimited && unmatched !== true && failMode === 'closed',
    );
    this.#matcher = new RuleMatcher(definitions);
    this.#definitions = definitions;
    this.#isForAnyUser = !definitions.some(asksWhoUserIs);
    this.#ids = new Set(definitions.map(({ id }) => id));
    this.#byCustomer = new Map(
      definitions
        .filter(countsByCustomer)
        .flatMap((rule) => windowIdsOf(rule).map((id) => [id, rule] as const)),
    );
  }

  /** The rule that counts by customer alone and has a window under this id. */
  ruleByCustomer(ruleId: string): RuleDefinition | undefined {
    return this.#byCustomer.get(ruleId);
  }

  /** @param question with its `rule`, that one alone */
  limitsFor({ descriptors, rule, cost = 1 }: Question): MatchedLimits | Invalid {
    return this.#limitsOfUser(descriptors, rule, cost) ?? this.#limitsOf(descriptors, rule, cost);
  }

  /**
   * The only limit of a question that names its user alone, as most do. One object serves all users, so it is for any user and cost 1;
   * `keyOfUser` makes the key. Undefined: there is another number of limits, and `limitsFor` finds them.
   */
  onlyLimitFor({ descriptors, rule, cost = 1 }: Question): MatchedLimit | undefined {
    const known = userIn(descriptors) === '' ? undefined : this.#knownOfAnyUser(rule);
    return known === undefined || cost > known.costMax ? undefined : known.only;
  }

  #limitsOf(descriptors: Descriptors, rule: string | undefined, cost: number): MatchedLimits | Invalid {
    if (rule === undefined) return this.#judged(this.#matcher.match(descriptors), cost);
    const stated = this.#statedRule(rule);
    if (stated !== undefined) return statedLimits(stated, descriptors, cost);
    const matching = this.#matcher.matchNamed(rule, descriptors);
    if (matching.kind === 'unnamed') return invalid(matching.field, matching.message);
    return limitsOf(matching, cost);
  }

  #judged(matching: Matching, cost: number): MatchedLimits | Invalid {
    if (matching.kind === 'unkeyed' || matching.isMatched || this.unmatched === undefined)
      return limitsOf(matching, cost);
    return { kind: 'limits', enforced: [], onTrial: [], unmatched: this.unmatched };
  }

  /** Most requests name only their user: their limits were found once. Undefined: they have to be matched. */
  #limitsOfUser(
    descriptors: Descriptors,
    rule: string | undefined,
    asked: number,
  ): MatchedLimits | undefined {
    const user = userIn(descriptors);
    if (user === '') return undefined;
    const known = this.#knownOfAnyUser(rule);
    // A rule may multiply it above `COST_MAX`.
    if (known === undefined || asked > known.costMax) return undefined;
    const { limits } = known;
    if (limits.unmatched !== undefined) return limits;
    const { enforced, onTrial } = limits;
    const ofThis = (limit: MatchedLimit): MatchedLimit => limitOfUser(limit, user, asked);
    return {
      kind: 'limits',
      enforced: enforced.map(ofThis),
      onTrial: onTrial.map((windows) => windows.map(ofThis)),
    };
  }

  #knownOfAnyUser(rule: string | undefined): OfAnyUser | undefined {
    if (!this.#isForAnyUser) return undefined;
    const known = this.#ofAnyUser.get(rule);
    if (known !== undefined || this.#ofAnyUser.has(rule)) return known;
    // Whoever asks makes up rules that are not there, or states them.
    if (rule !== undefined && !this.#ids.has(rule)) return undefined;
    const limits = this.#limitsOf(ANY_USER, rule, 1);
    const found = limits.kind === 'limits' ? ofAnyUser(limits) : undefined;
    this.#ofAnyUser.set(rule, found);
    return found;
  }

  #statedRule(id: string): RuleDefinition | undefined {
    const known = this.#stated.get(id);
    if (known !== undefined || !isStatedId(id)) return known;
    if (this.#stated.size >= STATED_MAX) this.#stated.clear();
    const definition = statedDefinition(id);
    this.#stated.set(id, definition);
    return definition;
  }

  /**
   * The ids under which the limiter keeps the windows of the rules that count by keys such as `key`, or of one rule, or one
   * window; undefined: there is no such one.
   */
  limitIdsOf(key: string, ruleId?: string): readonly string[] | undefined {
    const kind = JSON.stringify(partNamesIn(key));
    const found = this.#definitions.filter(
      ({ scope, enabled, unlimited, unmatched }) =>
        enabled && !unlimited && unmatched !== true && JSON.stringify(countedNames(scope)) === kind,
    );
    const ids = found.flatMap((rule) =>
      windowIdsOf(rule).filter((id) => ruleId === undefined || rule.id === ruleId || id === ruleId),
    );
    return ruleId !== undefined && ids.length === 0 ? undefined : ids;
  }

  /** A request that says no more than this key is denied, as no rule is for it. */
  deniesKey(key: string): boolean {
    if (this.unmatched !== 'deny' || key === GLOBAL_KEY) return false;
    const matching = this.#matcher.match(descriptorsIn(key));
    return matching.kind === 'rules' && !matching.isMatched;
  }

  listsFor(request: ListedRequest): MatchedLists | Invalid {
    return listedLimits(this.#matcher, request, this.unmatched);
  }

  /** What is too dear is denied before anybody is asked for a grant: only other rules can have found that by now. */
  chargeableListsFor(request: ListedRequest): MatchedLists | Invalid | Unavailable {
    const lists = this.listsFor(request);
    return lists.kind === 'limits' && lists.tooDear.length > 0 ? RULES_CHANGED : lists;
  }
}

/** The names of the parts of its keys, in their order. */
function countedNames(scope: Scope): readonly string[] {
  if (scope.kind === 'descriptors') return scope.key.map(partName);
  return scope.steps.filter(({ isCounted }) => isCounted).map(({ name }) => name);
}

function ofAnyUser(limits: MatchedLimits): OfAnyUser {
  const { enforced, onTrial } = limits;
  const costMax = COST_MAX / Math.max(1, ...[enforced, ...onTrial].flat().map(({ cost }) => cost));
  const isOne = enforced.length === 1 && onTrial.length === 0;
  return { limits, only: isOne ? enforced[0] : undefined, costMax };
}

/** The only descriptor, if that is a user whose key is written as the id is; else ''. */
function userIn(descriptors: Descriptors): string {
  const user = descriptors.size === 1 ? (descriptors.get(USER) ?? '') : '';
  return user.length > USER_ID_BYTES_MAX || ESCAPED.test(user) ? '' : user;
}

/** A limit of any user at cost 1, as that of one user. */
function limitOfUser(
  { userId, ruleId, cost, rule, window }: MatchedLimit,
  user: string,
  asked: number,
): MatchedLimit {
  return { userId: keyOfUser(userId, user), ruleId, cost: cost * asked, rule, window };
}

/** The key of a limit of any user, as that of one user. */
export function keyOfUser(key: string, user: string): string {
  return key === GLOBAL_KEY ? key : `${USER}=${user}`;
}

function limitsOf(matching: Matching, cost: number): MatchedLimits | Invalid {
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

/** By a rule that the request states itself: it counts by user. */
function statedLimits(rule: RuleDefinition, descriptors: Descriptors, cost: number): MatchedLimits | Invalid {
  const user = descriptors.get(USER) ?? '';
  if (user === '')
    return invalid('descriptors', `descriptors must have ${USER}: rule '${rule.id}' counts by it`);
  const key = userKey(user);
  if (key === undefined) return invalid('descriptors', `${USER} is too long, or no Unicode`);
  return {
    kind: 'limits',
    enforced: windowsOf({ rule, key, cost: 1 }, cost),
    onTrial: [],
  };
}

function countsByCustomer({ scope, enabled }: RuleDefinition): boolean {
  if (!enabled || scope.kind !== 'descriptors') return false;
  const [only, ...others] = scope.key;
  return only?.name === CUSTOMER && others.length === 0;
}

function invalid(field: string, message: string): Invalid {
  return { kind: 'invalid', field, message };
}

function asksWhoUserIs({ scope }: RuleDefinition): boolean {
  return scope.kind === 'descriptors' && scope.conditions.some(({ name }) => name === USER);
}
