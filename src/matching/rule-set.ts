/** The rules of one version, prepared to find the limits of a request. It asks nobody and decides nothing. */
import type { Invalid, Unavailable } from '../api/answer.ts';
import { type Descriptors, USER } from '../api/descriptors.ts';
import type { Question } from '../api/question.ts';
import { isStatedId } from '../api/stated-rule.ts';
import type { ListedRequest } from '../api/listed.ts';
import { COST_MAX, LIMITS_PER_REQUEST_MAX, USER_ID_BYTES_MAX } from '../api/request.ts';
import type { Unmatched } from '../api/refusals.ts';
import { CUSTOMER } from './customer-cache.ts';
import { type Matching, RuleMatcher } from '../rules/match.ts';
import { descriptorsIn, GLOBAL_KEY, partNamesIn, userKey } from '../api/key-text.ts';
import { definitionsOfTable, statedDefinition } from '../rules/limiter-rules.ts';
import { partName, type RuleDefinition, type Scope } from '../rules/rule-definition.ts';
import { unmatchedIn } from '../rules/unmatched.ts';
import { listedLimits, type MatchedLists } from './listed-limits.ts';
import { type MatchedLimit, type MatchedLimits, windowIdsOf, windowsOf } from './matched-limit.ts';
import { RULES_CHANGED } from './node-refusals.ts';
import type { Rule } from '../api/rule.ts';

/** How many rules that requests state themselves are kept prepared. */
const STATED_MAX = 256;
/** A key escapes these characters in the id of a user. */
const ESCAPED = /[%,]/;

/** Descriptors that stand for any user. */
const ANY_USER: Descriptors = new Map([[USER, USER]]);

/**
 * The limits of any request that names only its user, at cost 1, and the highest cost by which they may be
 * multiplied.
 */
interface OfAnyUser {
  readonly limits: MatchedLimits;
  /** The limit, if there is exactly one and it is not in shadow. */
  readonly only: MatchedLimit | undefined;
  readonly costMax: number;
}

/** Finds the limits of requests by the rules of one version. */
export class RuleSet {
  readonly version: number;
  /** At least one rule has fail mode `closed`. */
  readonly isClosed: boolean;
  /** The setting for requests that no rule matches. Undefined: they are let through. */
  readonly unmatched: Unmatched | undefined;
  readonly #matcher: RuleMatcher;
  readonly #definitions: readonly RuleDefinition[];
  readonly #ids: ReadonlySet<string>;
  /** No rule has a condition on the user's id. */
  readonly #isForAnyUser: boolean;
  /** Limits of requests that name only their user, by the rule that they ask for; filled as they come. */
  readonly #ofAnyUser = new Map<string | undefined, OfAnyUser | undefined>();
  readonly #stated = new Map<string, RuleDefinition>();
  /** Rules that count by customer alone, by the ids of their windows. */
  readonly #byCustomer: ReadonlyMap<string, RuleDefinition>;

  /** @param version of the rule table that these definitions were compiled to */
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

  /** The rule that counts by customer alone and has a window with this id. */
  ruleByCustomer(ruleId: string): RuleDefinition | undefined {
    return this.#byCustomer.get(ruleId);
  }

  /** What an override must name in place of `ruleId`, for which `ruleByCustomer` is undefined. Begins with a verb. */
  whyNoOverride(ruleId: string): string {
    const [window] = [...this.#byCustomer].find(([, { id }]) => id === ruleId) ?? [];
    if (window !== undefined) return `must name a window, such as '${window}': '${ruleId}' is a rule`;
    const isKnown = this.#definitions.some(
      (rule) => rule.id === ruleId || windowIdsOf(rule).includes(ruleId),
    );
    return isKnown
      ? `must name a window of an enabled rule that counts by customer alone, and '${ruleId}' is none`
      : `must name a window of a rule in force, and the rules (version ${this.version}) have no '${ruleId}'`;
  }

  /**
   * The limits of a question: by all rules, or, if it names a `rule`, by that one only. Invalid if a key is too
   * long or not Unicode, if too many limits apply, or if a multiplied cost is above `COST_MAX`.
   */
  limitsFor({ descriptors, rule, cost = 1 }: Question): MatchedLimits | Invalid {
    return this.#limitsOfUser(descriptors, rule, cost) ?? this.#limitsOf(descriptors, rule, cost);
  }

  /**
   * The limit of a question that names only its user and has exactly one limit, which is the common case. The
   * returned object is shared by all users: it is for any user and cost 1, and `keyOfUser` makes the key.
   * Undefined: use `limitsFor`.
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
    return { kind: 'limits', enforced: [], shadowed: [], unmatched: this.unmatched };
  }

  /** The limits of a request that names only its user, from the cache. Undefined: the rules have to be matched. */
  #limitsOfUser(
    descriptors: Descriptors,
    rule: string | undefined,
    asked: number,
  ): MatchedLimits | undefined {
    const user = userIn(descriptors);
    if (user === '') return undefined;
    const known = this.#knownOfAnyUser(rule);
    // A rule may multiply the cost above `COST_MAX`.
    if (known === undefined || asked > known.costMax) return undefined;
    const { limits } = known;
    if (limits.unmatched !== undefined) return limits;
    const { enforced, shadowed } = limits;
    const ofThis = (limit: MatchedLimit): MatchedLimit => limitOfUser(limit, user, asked);
    return {
      kind: 'limits',
      enforced: enforced.map(ofThis),
      shadowed: shadowed.map((windows) => windows.map(ofThis)),
    };
  }

  #knownOfAnyUser(rule: string | undefined): OfAnyUser | undefined {
    if (!this.#isForAnyUser) return undefined;
    const known = this.#ofAnyUser.get(rule);
    if (known !== undefined || this.#ofAnyUser.has(rule)) return known;
    // Callers can name rules that do not exist, and state their own; do not cache those.
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
   * The ids of the windows that count by keys like `key`: of all such rules, or of one rule or one window.
   * Undefined if `ruleId` is given and has none.
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

  /** Whether a request with just the descriptors of this key is denied because no rule matches it. */
  deniesKey(key: string): boolean {
    if (this.unmatched !== 'deny' || key === GLOBAL_KEY) return false;
    const matching = this.#matcher.match(descriptorsIn(key));
    return matching.kind === 'rules' && !matching.isMatched;
  }

  /** The limits of a request of lists. */
  listsFor(request: ListedRequest): MatchedLists | Invalid {
    return listedLimits(this.#matcher, request, this.unmatched);
  }

  /**
   * Like `listsFor`, but `rules_changed` if a cost is too high: such a request was denied before, unless the rules
   * have changed since.
   */
  chargeableListsFor(request: ListedRequest): MatchedLists | Invalid | Unavailable {
    const lists = this.listsFor(request);
    return lists.kind === 'limits' && lists.tooExpensive.length > 0 ? RULES_CHANGED : lists;
  }
}

/** The names in the keys that a scope counts by, in order. */
function countedNames(scope: Scope): readonly string[] {
  if (scope.kind === 'descriptors') return scope.key.map(partName);
  return scope.steps.filter(({ isCounted }) => isCounted).map(({ name }) => name);
}

function ofAnyUser(limits: MatchedLimits): OfAnyUser {
  const { enforced, shadowed } = limits;
  const costMax = COST_MAX / Math.max(1, ...[enforced, ...shadowed].flat().map(({ cost }) => cost));
  const isOne = enforced.length === 1 && shadowed.length === 0;
  return { limits, only: isOne ? enforced[0] : undefined, costMax };
}

/** The user, if it is the only descriptor and its id needs no escaping in the key; else ''. */
function userIn(descriptors: Descriptors): string {
  const user = descriptors.size === 1 ? (descriptors.get(USER) ?? '') : '';
  return user.length > USER_ID_BYTES_MAX || ESCAPED.test(user) ? '' : user;
}

/** The limit of one user, from the shared limit of any user at cost 1. */
function limitOfUser(
  { userId, ruleId, cost, rule, window }: MatchedLimit,
  user: string,
  asked: number,
): MatchedLimit {
  return { userId: keyOfUser(userId, user), ruleId, cost: cost * asked, rule, window };
}

/** The key of one user, from the key of the shared limit. */
export function keyOfUser(key: string, user: string): string {
  return key === GLOBAL_KEY ? key : `${USER}=${user}`;
}

function limitsOf(matching: Matching, cost: number): MatchedLimits | Invalid {
  if (matching.kind === 'unkeyed')
    return invalid(
      'descriptors',
      `the key of rule '${matching.rule.id}' is too long or is not valid Unicode`,
    );
  const limiting = matching.applied.filter(({ rule }) => !rule.unlimited);
  const enforced = limiting.filter(({ rule }) => !rule.shadow).flatMap((rule) => windowsOf(rule, cost));
  if (enforced.length > LIMITS_PER_REQUEST_MAX)
    return invalid('descriptors', `${enforced.length} limits apply; at most ${LIMITS_PER_REQUEST_MAX} may`);
  const tooExpensive = enforced.find((limit) => limit.cost > COST_MAX);
  if (tooExpensive !== undefined)
    return invalid(
      'cost',
      `cost must be at most ${COST_MAX} after rule '${tooExpensive.ruleId}' multiplies it`,
    );
  const shadowed = limiting
    .filter(({ rule }) => rule.shadow)
    .map((rule) => windowsOf(rule, cost))
    .filter((windows) => windows.every((limit) => limit.cost <= COST_MAX));
  return { kind: 'limits', enforced, shadowed };
}

/** The limit that the request states itself; it counts by user. */
function statedLimits(rule: RuleDefinition, descriptors: Descriptors, cost: number): MatchedLimits | Invalid {
  const user = descriptors.get(USER) ?? '';
  if (user === '')
    return invalid('descriptors', `descriptors must have ${USER}: rule '${rule.id}' counts by it`);
  const key = userKey(user);
  if (key === undefined) return invalid('descriptors', `${USER} is too long or is not valid Unicode`);
  return {
    kind: 'limits',
    enforced: windowsOf({ rule, key, cost: 1 }, cost),
    shadowed: [],
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

/** The rules in the state of group 0. */
interface Known {
  readonly rules: { readonly version: number; readonly rules: readonly Rule[] };
  /** The rule definitions as JSON. Absent if the rules were given as a plain table. */
  readonly definitions?: string;
}

/**
 * Makes the rule set of the newest rules that this node knows, when it is first needed, and keeps it until the
 * version changes.
 */
export class CurrentRuleSet {
  #ruleSet: RuleSet | undefined;

  /** The rule set of these rules. The same object is returned as long as the version is the same. */
  of({ rules, definitions }: Known): RuleSet {
    // A version always stands for the same rules, so comparing versions is enough.
    if (this.#ruleSet?.version !== rules.version) {
      const meant =
        definitions === undefined
          ? definitionsOfTable(rules.rules)
          : (JSON.parse(definitions) as readonly RuleDefinition[]);
      this.#ruleSet = new RuleSet(rules.version, meant);
    }
    return this.#ruleSet;
  }
}
