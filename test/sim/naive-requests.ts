/** The request ids that the naive limiter remembers: those of grants, for a while, the newest of a user and id. */
import type { Decision } from '../../src/limiter/decision.ts';
import type { StateItem } from '../../src/limiter/state/inspection.ts';
import type { Asked } from './id-ledger.ts';
import type { Tally } from './naive-state.ts';

/** The model of sizes: src/limiter/README.md. */
const ID_BYTES = 128;

interface Remembered {
  readonly asked: Asked;
  readonly decision: Decision;
  readonly index: number;
  readonly untilMillis: number;
  isNewest: boolean;
  isRefunded: boolean;
}

export class NaiveRequests {
  /** In grant order, down to what has expired and was not swept. */
  readonly #queue: Remembered[] = [];
  /** By user and id, the newest last. */
  readonly #ids = new Map<string, Remembered[]>();
  readonly #tally: Tally;

  constructor(tally: Tally) {
    this.#tally = tally;
  }

  /** What is remembered of this id after entry `index`, if it still counts. */
  find(
    asked: Asked,
    { index, nowMillis }: { readonly index: number; readonly nowMillis: number },
  ): Remembered | undefined {
    const newest = this.#ids.get(idKey(asked))?.findLast((grant) => grant.index <= index);
    return newest !== undefined && newest.untilMillis >= nowMillis ? newest : undefined;
  }

  remember(
    asked: Asked,
    decision: Decision,
    { index, untilMillis }: { readonly index: number; readonly untilMillis: number },
  ): void {
    const id = { asked, decision, index, untilMillis, isNewest: true, isRefunded: false };
    const same = this.#ids.get(idKey(asked)) ?? [];
    this.#ids.set(idKey(asked), same);
    const before = same.at(-1);
    if (before !== undefined && this.#queue.includes(before)) {
      this.#tally.count(requestItem(before), -1);
      before.isNewest = false;
      this.#tally.count(requestItem(before), 1);
    }
    same.push(id);
    this.#queue.push(id);
    this.#tally.bytes += requestBytes(asked, decision.ruleId);
    this.#tally.count(requestItem(id), 1);
  }

  /** It was taken back: it stays remembered as that. */
  refund(grant: Remembered): void {
    this.#tally.count(requestItem(grant), -1);
    grant.isRefunded = true;
    this.#tally.count(requestItem(grant), 1);
  }

  /** Forgets the oldest that do not count any more, so many at most. */
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

function requestItem({ asked, decision, untilMillis, isNewest, isRefunded }: Remembered): StateItem {
  const { userId, requestId = '', rule: ruleId, cost, timestampMillis } = asked;
  const fingerprint = { ruleId, cost, timestampMillis, askedDigest: undefined };
  return {
    kind: 'request',
    userId,
    requestId,
    asked: fingerprint,
    expiresMillis: untilMillis,
    isFound: isNewest,
    isRefunded,
    decision,
  };
}
