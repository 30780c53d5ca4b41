/** Requests under several limits at once: their limits, all in one partition, and other requests under the same id. */
import type { AllowRequest, FurtherLimit } from '../../src/api/request.ts';
import { idOfRule } from './draw-rules.ts';
import type { Random } from './random.ts';
import type { Settings } from './settings.ts';

export interface JointRequestsInit {
  readonly settings: Settings;
  readonly random: Random;
  readonly partitionOf: (userId: string) => number;
  /** The cost under this rule; a cost of 1 is omitted. */
  readonly costOf: (ruleId: string) => { readonly cost?: number };
}

/** Keys that several users share, such as addresses: this many in a partition, chosen among this many names. */
const GROUPS = 3;
const NAMES = 600;
/** Tries to find an unused name in the partition. */
const TRIES_MAX = 8;

export class JointRequests {
  readonly #init: JointRequestsInit;
  readonly #random: Random;
  /** By kind of user and partition. */
  readonly #groups = new Map<string, readonly string[]>();

  constructor(init: JointRequestsInit) {
    this.#init = init;
    this.#random = init.random;
  }

  /** The same request under more limits; sometimes under a single one that rules have found. */
  of(request: AllowRequest): AllowRequest {
    const limited = this.#limited(request);
    return { ...limited, askedDigest: digestOf(limited) };
  }

  /** Another request under the id of `first`, or the same under other limits. */
  underSameId(first: AllowRequest): AllowRequest {
    const { further, askedDigest = 1, ...alone } = first;
    switch (this.#random.pick(['digest', 'limits', 'limits', 'alone', 'fewer'])) {
      case 'digest':
        return { ...first, askedDigest: askedDigest === 1 ? 2 : askedDigest - 1 };
      case 'alone':
        return alone;
      case 'fewer':
        return { ...alone, askedDigest, ...(further && further.length > 1 && { further: further.slice(1) }) };
      default:
        return { ...this.#limited(alone), askedDigest };
    }
  }

  #limited(request: AllowRequest): AllowRequest {
    const hasTime = request.timestampMillis !== undefined;
    // The other rule takes no timestamps.
    const byRequest = idOfRule(this.#init.settings, 'default');
    const byCluster = idOfRule(this.#init.settings, 'cluster');
    const rules = hasTime ? [byRequest] : [byRequest, byCluster, byCluster];
    const { ruleId = byRequest } = request;
    const further: FurtherLimit[] = [];
    const more = this.#random.pick([0, 1, 1, 1, 2, 3]);
    for (let i = 0; i < TRIES_MAX && further.length < more; i += 1) {
      const rule = this.#random.pick(rules);
      const userId = this.#userFor(request.userId, hasTime);
      const isTaken = [{ userId: request.userId, ruleId }, ...further].some(
        (limit) => limit.userId === userId && limit.ruleId === rule,
      );
      // Each rule may decide this itself.
      const isSettled = request.settle === true && this.#random.chance(0.7);
      const cost = this.#init.costOf(rule);
      if (!isTaken) further.push({ userId, ruleId: rule, ...cost, ...(isSettled && { settle: true }) });
    }
    return further.length === 0 ? request : { ...request, ruleId, further };
  }

  /** The same user, another one, or a key that several users share. */
  #userFor(userId: string, hasTime: boolean): string {
    const { partitionOf, settings } = this.#init;
    const random = this.#random;
    const partition = partitionOf(userId);
    if (random.chance(0.4)) return userId;
    // A request with a timestamp makes its key one of callers' times.
    if (!hasTime && random.chance(0.4)) {
      const other = `user${random.below(settings.clients.users)}`;
      if (other !== 'user1' && partitionOf(other) === partition) return other;
    }
    const groups = this.#groupsOf(hasTime ? 'event' : 'user', partition);
    return groups.length === 0 ? userId : random.pick(groups);
  }

  #groupsOf(kind: string, partition: number): readonly string[] {
    const key = `${kind}/${partition}`;
    let groups = this.#groups.get(key);
    if (groups === undefined) {
      const names = Array.from({ length: NAMES }, (_, i) => `${kind}Group${i}`);
      groups = names.filter((name) => this.#init.partitionOf(name) === partition).slice(0, GROUPS);
      this.#groups.set(key, groups);
    }
    return groups;
  }
}

/** Small, and the same for all equal requests, but not for a request under another id. */
function digestOf({ userId, ruleId, cost, timestampMillis, further }: AllowRequest): number {
  const words = JSON.stringify([userId, ruleId, cost, timestampMillis, further]);
  let hash = 0x811c9dc5;
  for (const char of words) hash = Math.imul(hash ^ char.charCodeAt(0), 0x01000193);
  return 1 + (hash >>> 0);
}
