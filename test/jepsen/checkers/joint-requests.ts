/**
 * Groups attempts under one id into one request: the earliest and latest moment of its grant, the moment from which it
 * may have been refunded, and the limits it counts at. Judges nothing.
 */
import type { Ask, JointHistory, LimitAsked, Refund } from '../joint-history.ts';

export interface JointRequest {
  readonly requestId: string;
  readonly limits: readonly LimitAsked[];
  readonly cost: number;
  /** The cost is settled after the fact. */
  readonly settled: boolean;
  /** Ordered by invocation. */
  readonly attempts: readonly Ask[];
  /** Made between the first attempt and the first answer that reported it. Undefined: no answer did. */
  readonly grant: JointGrant | undefined;
  /** Ordered by invocation, with any outcome. */
  readonly refunds: readonly Refund[];
  /** Before this moment no client had requested anything that could refund it. Infinity: none ever did. */
  readonly givenBackFromNanos: number;
}

export interface JointGrant {
  readonly answered: Ask;
  readonly invokeNanos: number;
  readonly completeNanos: number;
}

export function jointRequests({ asks, refunds }: JointHistory): JointRequest[] {
  const attemptsOf = groupBy(asks);
  const refundsOf = groupBy(refunds);
  return [...attemptsOf].flatMap(([requestId, attempts]) => {
    const [first] = attempts;
    if (first === undefined) return [];
    const { limits, cost, settled } = first;
    const own = refundsOf.get(requestId) ?? [];
    const maybe = own.find((refund) => refund.refunded === true || refund.class === 'info');
    const givenBackFromNanos = maybe?.invokeNanos ?? Infinity;
    const grant = grantOf(attempts);
    return [{ requestId, limits, cost, settled, attempts, grant, refunds: own, givenBackFromNanos }];
  });
}

function grantOf(attempts: readonly Ask[]): JointGrant | undefined {
  const answers = attempts.filter(({ allowed }) => allowed === true);
  const [answered] = answers.toSorted((a, b) => a.completeNanos - b.completeNanos);
  const first = attempts.find((attempt) => attempt.class !== 'fail');
  if (answered === undefined || first === undefined) return undefined;
  return { answered, invokeNanos: first.invokeNanos, completeNanos: answered.completeNanos };
}

function groupBy<T extends Ask | Refund>(events: readonly T[]): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const event of events.toSorted((a, b) => a.invokeNanos - b.invokeNanos)) {
    const group = groups.get(event.requestId);
    if (group === undefined) groups.set(event.requestId, [event]);
    else group.push(event);
  }
  return groups;
}

/** The partition of each key, learned from the receipts of grants: a receipt names the partition of the first key. */
export class Homes {
  readonly #groups = new Map<string, Set<number>>();

  constructor(asks: readonly Ask[]) {
    for (const { allowed, receipt, limits } of asks) {
      const key = limits[0]?.key;
      if (allowed !== true || receipt === null || key === undefined) continue;
      const groups = this.#groups.get(key);
      if (groups === undefined) this.#groups.set(key, new Set([receipt.group]));
      else groups.add(receipt.group);
    }
  }

  /** Keys that several partitions decided for. There must be none. */
  get divided(): readonly (readonly [key: string, groups: readonly number[]])[] {
    return [...this.#groups]
      .filter(([, groups]) => groups.size > 1)
      .map(([key, groups]) => [key, [...groups]]);
  }

  /** Undefined: no receipt shows it. */
  #groupOf(key: string): number | undefined {
    return this.#groups.get(key)?.values().next().value;
  }

  /** Undefined: the partition of one of them is unknown. */
  areTogether(a: string, b: string): boolean | undefined {
    if (a === b) return true;
    const [first, second] = [this.#groupOf(a), this.#groupOf(b)];
    return first === undefined || second === undefined ? undefined : first === second;
  }

  /** Whether limits may have been reserved before the request was decided. */
  mayReserve({ limits }: Ask): boolean {
    return limits.some(({ key }) => this.areTogether(limits[0]?.key ?? '', key) !== true);
  }
}

/** One key under one rule. */
export function budgetName({ rule, key }: LimitAsked): string {
  return `key '${key}' under rule '${rule}'`;
}
