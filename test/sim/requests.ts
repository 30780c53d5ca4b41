/** Draws the requests of the users of the simulated cluster: user, rule, cost, timestamp and id. */
import type { AllowRequest } from '../../src/api/request.ts';
import { MAX_AHEAD_MILLIS_DEFAULT, type RuleTable } from '../../src/limiter/rules.ts';
import { JointRequests } from './joint-requests.ts';
import { capacityOf } from './naive-meters.ts';
import { idOfRule } from './draw-rules.ts';
import type { Random } from './random.ts';
import type { Settings } from './settings.ts';

export interface RequestsInit {
  readonly settings: Settings;
  readonly random: Random;
  readonly now: () => number;
  readonly partitionOf: (userId: string) => number;
  /** The newest in any log; undefined: no log has rules. */
  readonly rules: () => RuleTable | undefined;
}

/** Chance of a request that no rule can grant. */
const MISTAKEN = 0.05;
const LAST_GRANTED_MAX = 20;
const MINUTE_MILLIS = 60_000;
/** How users choose their timestamps. */
const HABITS = ['now', 'late', 'epoch', 'any', 'early'] as const;
type Habit = (typeof HABITS)[number];

export class Requests {
  readonly #init: RequestsInit;
  readonly #random: Random;
  #ids = 0;
  /** Requests with ids that were granted recently. */
  readonly #lastGranted: AllowRequest[] = [];
  /** Ids that more than one request has. */
  readonly #shared = new Set<string>();
  readonly #joint: JointRequests;

  readonly #default: string;
  readonly #cluster: string;
  /**
   * The timestamps of these users may be anything: in some worlds any habit, in others only two, which interact more
   * often.
   */
  readonly #anyTimes: readonly Habit[];

  constructor(init: RequestsInit) {
    this.#init = init;
    this.#default = idOfRule(init.settings, 'default');
    this.#cluster = idOfRule(init.settings, 'cluster');
    this.#random = init.random;
    const times = init.random.shuffled<Habit>(['now', 'late', 'epoch', 'early']);
    this.#anyTimes = times.slice(0, init.random.between(2, times.length));
    this.#joint = new JointRequests({ ...init, costOf: (ruleId) => this.#maybeCost(ruleId) });
  }

  /** More than one request has its id. */
  isShared({ requestId = '' }: AllowRequest): boolean {
    return this.#shared.has(requestId);
  }

  granted(request: AllowRequest): void {
    if (request.requestId !== undefined) this.#lastGranted.push(request);
    if (this.#lastGranted.length > LAST_GRANTED_MAX) this.#lastGranted.shift();
  }

  newId(): string {
    this.#ids += 1;
    return `r${this.#ids}`;
  }

  /** Another request under the id of one that was granted recently, or that waits for its answer. */
  underSameId(waiting: readonly AllowRequest[]): AllowRequest | undefined {
    const random = this.#random;
    // Except the requests that the recovery waits for, which keep their ids until granted.
    const candidates = [...this.#lastGranted, ...waiting].filter(
      ({ requestId, userId }) => requestId !== undefined && !userId.startsWith('probe'),
    );
    if (candidates.length === 0) return undefined;
    const picked = random.pick(candidates);
    if (picked.askedDigest !== undefined) {
      this.#shared.add(picked.requestId ?? '');
      return this.#joint.underSameId(picked);
    }
    const { ruleId, ...first } = picked;
    const hasTime = first.timestampMillis !== undefined;
    const named = ruleId === undefined ? {} : { ruleId };
    this.#shared.add(first.requestId ?? '');
    // A timestamp of 0 is a timestamp; having none is different.
    const mayBeTimed = hasTime || (ruleId !== this.#cluster && !first.userId.startsWith('user'));
    switch (
      random.pick(mayBeTimed ? ['cost', 'rule', 'time', 'zero', 'user'] : ['cost', 'rule', 'user', 'user'])
    ) {
      case 'zero':
        return { ...first, ...named, timestampMillis: 0 };
      case 'user':
        return { ...this.next(), requestId: first.requestId };
      case 'cost':
        return { ...first, ...named, cost: first.cost === 2 ? 1 : 2 };
      case 'rule':
        if (hasTime) return ruleId === undefined ? { ...first, ruleId: this.#default } : first;
        return { ...first, ruleId: ruleId === this.#cluster ? this.#default : this.#cluster };
      default:
        return { ...first, ...named, timestampMillis: Math.abs((first.timestampMillis ?? 0) - 1) };
    }
  }

  next(): AllowRequest {
    const { joint, settled } = this.#init.settings.clients;
    const request = settled > 0 && this.#random.chance(settled) ? this.#settled() : this.alone();
    return joint > 0 && this.#random.chance(joint) ? this.#joint.of(request) : request;
  }

  /** Sometimes above any limit. */
  #settled(): AllowRequest {
    const request = this.alone();
    const cost = this.#random.pick([request.cost ?? 1, 1, this.#cost(request.ruleId ?? this.#default) * 3]);
    return { ...request, cost, settle: true };
  }

  /** Under one limit. */
  alone(): AllowRequest {
    const random = this.#random;
    const { users, eventUsers, withId } = this.#init.settings.clients;
    const isEvent = random.below(users + eventUsers) >= users;
    // Some users are used much more often than others.
    const plain = random.chance(0.5) ? 0 : random.below(users);
    const kind = isEvent ? 'event' : plain === 1 ? 'mixed' : 'user';
    const userId = isEvent ? `event${random.below(eventUsers)}` : `${kind}${plain}`;
    const hasTime = isEvent || (kind === 'mixed' && random.chance(0.5));
    const rule = hasTime ? undefined : this.#rule();
    return {
      userId,
      ...(rule !== undefined && { ruleId: rule }),
      ...this.#maybeCost(rule ?? this.#default),
      ...(hasTime && { timestampMillis: this.#timestamp(userId) }),
      ...(random.chance(withId) && { requestId: this.newId() }),
    };
  }

  /** Users know which rules exist, or most of them do. */
  #rule(): string | undefined {
    const rule = this.#random.pick([undefined, this.#default, this.#cluster, this.#cluster]);
    const isThere = rule === undefined || this.#inForce.rules.some(({ id }) => id === rule);
    return isThere || this.#random.chance(MISTAKEN) ? rule : undefined;
  }

  get #inForce(): RuleTable {
    const { settings, rules } = this.#init;
    return rules() ?? { ...settings.config.rules, version: 1 };
  }

  #maybeCost(ruleId: string): { readonly cost?: number } {
    const { withCost } = this.#init.settings.clients;
    return this.#random.chance(withCost) ? { cost: this.#cost(ruleId) } : {};
  }

  #cost(ruleId: string): number {
    const random = this.#random;
    const rule = this.#inForce.rules.find(({ id }) => id === ruleId);
    const limit = rule === undefined ? 1 : capacityOf(rule);
    if (random.chance(MISTAKEN)) return limit + 1;
    if (!this.#init.settings.clients.costsUpToLimit) return Math.min(limit, random.between(1, 2));
    return random.chance(0.4) ? limit : random.between(1, limit);
  }

  /** Each user keeps its habit: now, minutes late, early, another epoch, or anything. */
  #timestamp(userId: string): number {
    const random = this.#random;
    const now = Math.floor(this.#init.now());
    const known = userId.startsWith('event')
      ? HABITS[Number(userId.slice('event'.length)) % HABITS.length]
      : 'any';
    const habit = this.#init.settings.clients.strangeTimes ? known : 'now';
    switch (habit === 'any' ? random.pick(this.#anyTimes) : habit) {
      case 'late':
        return now - random.between(MINUTE_MILLIS, 5 * MINUTE_MILLIS);
      case 'early':
        return now + random.between(0, random.pick([100, 2_000, MAX_AHEAD_MILLIS_DEFAULT]));
      case 'epoch':
        // Seconds instead of milliseconds, or a counter that begins at 0.
        if (random.chance(0.8)) return Math.floor(now / 1_000) + random.between(-30, 5);
        return random.chance(0.2) ? 0 : random.between(0, 1_000);
      default:
        return now + random.between(-30, 5);
    }
  }
}
