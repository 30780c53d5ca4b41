/**
 * The law of request ids, written again: while a grant is remembered, the same request gets the same receipt, another
 * request under its id is refused, and no request is refused otherwise. Two requests are the same if every asked field
 * is the same.
 */
import type { Entry } from '../../raft/types.ts';
import type { Decision } from '../../src/limiter/decision.ts';
import type { AllowRequest, FurtherLimit } from '../../src/api/request.ts';
import { check } from './story.ts';

/** One limit that a request is under. */
interface AskedLimit {
  readonly userId: string;
  /** '' if the request names no rule. */
  readonly rule: string;
  readonly cost: number;
  /** A settled cost: neither this limit nor a block of this key denies it. */
  readonly isSettled?: boolean;
}

/** A request as its client asked it. */
export interface Asked extends AskedLimit {
  readonly timestampMillis: number | undefined;
  readonly requestId: string | undefined;
  /** The digest of the question, if rules found its limits. */
  readonly askedDigest?: number | undefined;
  /** The limits after the first. */
  readonly further?: readonly AskedLimit[];
  /** The request counts only if the record of this key has this version. */
  readonly guard?: { readonly userId: string; readonly version: number };
  /** The number of the attempt whose reservations are in other partitions. A repetition has another number. */
  readonly attempt?: number | undefined;
  /** A refund of the grant under its id. It asks for nothing: its cost is 0. */
  readonly isRefund?: boolean;
  /** A query for the grant under its id, and for nothing more. */
  readonly isRecall?: boolean;
}

export function askedBy({
  timestampMillis,
  requestId,
  askedDigest,
  further,
  guard,
  ...first
}: AllowRequest): Asked {
  const asked = { ...limitOf(first), timestampMillis, requestId, ...(guard !== undefined && { guard }) };
  if (askedDigest === undefined) return asked;
  return { ...asked, askedDigest, ...(further !== undefined && { further: further.map(limitOf) }) };
}

function limitOf({
  userId,
  ruleId,
  cost,
  settle,
}: Omit<FurtherLimit, 'ruleId'> & { ruleId?: string | undefined }): AskedLimit {
  const limit = { userId, rule: ruleId ?? '', cost: cost ?? 1 };
  return settle === true ? { ...limit, isSettled: true } : limit;
}

/** Each of its limits as a request of its own; those after the first have an empty id if the request has any. */
export function limitsOf({ further = [], ...asked }: Asked): readonly Asked[] {
  const requestId = asked.requestId === undefined ? undefined : '';
  return [asked, ...further.map((limit) => ({ ...asked, isSettled: false, ...limit, requestId }))];
}

/** Equal for two requests that ask the same. */
export function wordsOf(asked: Asked): string {
  const { userId, rule, cost, timestampMillis, requestId, askedDigest, further = [] } = asked;
  const words = [userId, requestId ?? null, rule, cost, timestampMillis ?? null];
  if (askedDigest === undefined) return JSON.stringify(words);
  return JSON.stringify([...words, askedDigest, ...further.map((one) => [one.userId, one.rule, one.cost])]);
}

/** Equal for two attempts of one request: under an id the question counts, not the limits that it led to. */
export function identityOf(asked: Asked): string {
  const { userId, requestId, askedDigest } = asked;
  const isMatched = requestId !== undefined && askedDigest !== undefined;
  return isMatched ? JSON.stringify([userId, requestId, { askedDigest }]) : wordsOf(asked);
}

interface Remembered {
  readonly words: string;
  readonly identity: string;
  readonly receipt: string;
  readonly index: number;
  readonly position: number;
  /** The last millisecond of group time. */
  readonly untilMillis: number;
  /** The entry that refunded it. */
  refundedIndex: number | undefined;
}

export class IdLedger {
  readonly #granted = new Map<string, Remembered>();

  /** Entry `entry` decided its request `i` this way. */
  logged(entry: Entry, i: number, asked: Asked, decision: Decision, horizonMillis: number): void {
    const key = keyOf(asked);
    if (key === undefined) return;
    const words = wordsOf(asked);
    const identity = identityOf(asked);
    const known = this.#granted.get(key);
    const where = `request ${words} in entry ${entry.index}, position ${i}`;
    const isReused = decision.refusal === 'request_id_reused';
    if (known === undefined || known.untilMillis < entry.timeMillis) {
      check(!isReused, () => `${where} is refused as a conflict, but no other request has its id`);
      if (!decision.allowed) return;
      this.#granted.set(key, {
        words,
        identity,
        receipt: JSON.stringify(decision.decided),
        index: entry.index,
        position: i,
        untilMillis: entry.timeMillis + horizonMillis,
        refundedIndex: undefined,
      });
    } else if (known.identity === identity && known.refundedIndex !== undefined) {
      check(
        decision.refusal === 'refunded',
        () => `${where} was refunded, but got ${JSON.stringify(decision)}`,
      );
    } else if (known.identity === identity) {
      check(
        decision.allowed && JSON.stringify(decision.decided) === known.receipt,
        () => `${where} was granted as ${known.receipt}, and now got ${JSON.stringify(decision)}`,
      );
    } else {
      check(isReused, () => `${where} has the id of ${known.words}, but got ${JSON.stringify(decision)}`);
    }
  }

  /**
   * Entry `entry` refunded the grant with the id of `asked`, if there is one. Returns whether it is the first to do so.
   */
  refunded(entry: Entry, asked: Asked, decision: Decision): boolean {
    const known = this.#granted.get(keyOf(asked) ?? '');
    const isKnown = known !== undefined && known.untilMillis > entry.timeMillis;
    const where = `the refund ${wordsOf(asked)} in entry ${entry.index}`;
    check(decision.refund?.refunded === isKnown, () => `${where}: ${JSON.stringify(decision)}`);
    if (!isKnown) return false;
    check(
      JSON.stringify(decision.decided) === known.receipt,
      () => `${where} is not that of ${known.receipt}`,
    );
    const isFirst = known.refundedIndex === undefined;
    known.refundedIndex ??= entry.index;
    return isFirst;
  }

  /** A client was denied: the state at that index must not have remembered its id. */
  denied(asked: Asked, { decided }: Decision): void {
    const known = this.#granted.get(keyOf(asked) ?? '');
    if (known === undefined || decided.timeMillis > known.untilMillis) return;
    const isBefore =
      known.index < decided.index ||
      (known.index === decided.index && (decided.position ?? Infinity) > known.position);
    check(
      !isBefore,
      () =>
        `${wordsOf(asked)} is denied at ${JSON.stringify(decided)}, but ${known.words} was granted before`,
    );
  }
}

function keyOf({ userId, requestId }: Asked): string | undefined {
  return requestId === undefined ? undefined : JSON.stringify([userId, requestId]);
}
