/** The request ids that the naive limiter remembers: those of grants, for a while, the newest per user and id. */
import type { Decision } from '../../src/limiter/decision.ts';
import type { StateItem } from '../../src/limiter/state/inspection.ts';
import type { Asked } from './id-ledger.ts';
import type { Tally } from './naive-state.ts';

/** The model of sizes: docs/internals/limiter.md. */
const ID_BYTES = 144;

/** One limit of a granted request. */
export interface GrantedLimit {
  readonly asked: Asked;
  readonly decision: Decision;
}

/** A request is kept and forgotten limit by limit. */
interface RememberedLimit extends GrantedLimit {
  readonly untilMillis: number;
  /** It is found by its id. Only the first limit of a request is, and only until the id is granted again. */
  isFound: boolean;
  isRefunded: boolean;
}

interface Remembered {
  readonly asked: Asked;
  /** Its answer. */
  readonly decision: Decision;
  readonly limits: readonly RememberedLimit[];
  readonly index: number;
}

export class NaiveRequests {
  /** In grant order, including those that expired but were not swept. */
  readonly #queue: RememberedLimit[] = [];
  /** By user and id, the newest last. */
  readonly #ids = new Map<string, Remembered[]>();
  readonly #tally: Tally;

  constructor(tally: Tally) {
    this.#tally = tally;
  }

  /** The remembered request of this id after entry `index`, if it still counts. */
  find(
    asked: Asked,
    { index, nowMillis }: { readonly index: number; readonly nowMillis: number },
  ): Remembered | undefined {
    const newest = this.#ids.get(idKey(asked))?.findLast((grant) => grant.index <= index);
    return newest !== undefined && newest.limits[0]!.untilMillis >= nowMillis ? newest : undefined;
  }

  /** @param granted all its limits, in their order */
  remember(
    { asked, decision }: GrantedLimit,
    granted: readonly GrantedLimit[],
    { index, untilMillis }: { readonly index: number; readonly untilMillis: number },
  ): void {
    const same = this.#ids.get(idKey(asked)) ?? [];
    this.#ids.set(idKey(asked), same);
    const before = same.at(-1)?.limits[0];
    if (before !== undefined && this.#queue.includes(before)) {
      this.#tally.count(requestItem(before), -1);
      before.isFound = false;
      this.#tally.count(requestItem(before), 1);
    }
    const limits = granted.map((one, i) => ({ ...one, untilMillis, isFound: i === 0, isRefunded: false }));
    same.push({ asked, decision, limits, index });
    for (const limit of limits) {
      this.#queue.push(limit);
      this.#tally.bytes += requestBytes(limit.asked, limit.decision.ruleId);
      this.#tally.count(requestItem(limit), 1);
    }
  }

  /** It was refunded under all its limits, and they stay remembered as refunded. */
  refund({ limits }: Remembered): void {
    for (const limit of limits) {
      this.#tally.count(requestItem(limit), -1);
      limit.isRefunded = true;
      this.#tally.count(requestItem(limit), 1);
    }
  }

  /** Forgets the oldest that no longer count, at most `drops` of them. */
  expire(nowMillis: number, drops: number): void {
    for (let dropped = 0; dropped < drops; dropped += 1) {
      const oldest = this.#queue[0];
      if (oldest === undefined || oldest.untilMillis >= nowMillis) return;
      this.#queue.shift();
      this.#tally.bytes -= requestBytes(oldest.asked, oldest.decision.ruleId);
      this.#tally.count(requestItem(oldest), -1);
    }
  }
}

function idKey({ userId, requestId }: Asked): string {
  return requestId === undefined ? '' : JSON.stringify([userId, requestId]);
}

export function requestBytes({ userId, requestId = '' }: Asked, ruleId: string): number {
  const bytes = userId.length + requestId.length;
  return ID_BYTES + Math.ceil(bytes / 4) * 4 + ruleId.length;
}

function requestItem({ asked, decision, untilMillis, isFound, isRefunded }: RememberedLimit): StateItem {
  const { userId, requestId = '', rule: ruleId, cost, askedDigest, attempt } = asked;
  // The digest covers the timestamp as well.
  const timestampMillis = askedDigest === undefined ? asked.timestampMillis : undefined;
  return {
    kind: 'request',
    userId,
    requestId,
    asked: { ruleId, cost, timestampMillis, askedDigest },
    attempt,
    expiresMillis: untilMillis,
    isFound,
    isRefunded,
    decision,
  };
}
