/**
 * Gives back the reservations of requests that are not granted. Load never prevents that: a refund is repeated
 * until its outcome is known, or until the reservation has expired. The outcomes are counted.
 */
import type { MonotonicClock } from '../api/clocks.ts';
import type { AllowAnswer } from '../api/answer.ts';
import type { RefundAnswer, RefundRequest } from '../api/refund.ts';
import type { AllowRequest } from '../api/request.ts';
import type { DoneWith } from '../api/user-request.ts';
import type { MatchedRequestsInit } from './matched-requests-init.ts';
import { type AnsweredPart, isCertain, isGrant, type RequestPart } from './part-outcome.ts';

/** The id of an attempt. Ids of callers never begin like that, and no other attempt has it. */
export function attemptId(attempt: number): string {
  return `~${attempt.toString(36)}`;
}

/** The id of the reservation that an attempt makes in the partition of this part. */
export function reservationId(attempt: number, { partition }: RequestPart): string {
  return `${attemptId(attempt)}.${partition}`;
}

/** The reservations to ask for. */
export function reservationsFor(parts: readonly RequestPart[], attempt: number): readonly Reserved[] {
  return parts.map((part) => ({ part, requestId: reservationId(attempt, part), answer: undefined }));
}

/** Asks for all reservations at once. Calls `done` when all are answered. */
export function reserveAll(
  ask: MatchedRequestsInit['ask'],
  reserved: readonly Reserved[],
  how: { readonly wantedOf: (one: Reserved) => AllowRequest; readonly untilMillis: number },
  done: () => void,
): void {
  let open = reserved.length;
  for (const one of reserved)
    ask(
      how.wantedOf(one),
      (answer) => {
        one.answer = answer;
        open -= 1;
        if (open === 0) done();
      },
      how.untilMillis,
    );
}

/** Outcomes of reservations that had to be given back; for the metrics. */
export interface ReservationCounts {
  /** Given back because another limit denied the request. */
  released: number;
  /** Not given back: it expired before a partition could be asked, or no log holds it. */
  left: number;
}

/** A reservation with its id, and its answer once that is there. */
export interface Reserved extends AnsweredPart {
  readonly requestId: string;
  answer: AllowAnswer | undefined;
}

/** What `Reservations` needs. */
export interface ReservationsInit extends MonotonicClock {
  /** Asks the leader of the partition; calls `done` once. */
  readonly ask: (request: RefundRequest, done: DoneWith<RefundRequest>, deadlineMillis: number) => void;
  /** Milliseconds that one attempt to give back may take. */
  readonly deadlineMillis: number;
}

/** A reservation that has to be given back. */
interface Release {
  readonly refund: RefundRequest;
  /** Until then a request whose answer was lost may still reach the log, so "not found" is not final. */
  readonly doubtUntilMillis: number;
  /** From then on the reservation has expired. */
  readonly untilMillis: number;
  /** When it is tried again, if its outcome is unknown. */
  dueMillis: number;
}

/** The pending releases of one partition. */
interface Line {
  readonly waiting: Set<Release>;
  /** To be tried again, in the order of `dueMillis`. */
  readonly paused: Set<Release>;
  askedCount: number;
  /** `#askNext` is running: answers that arrive at once must not start it again. */
  isAsking: boolean;
}

/** How many refunds one partition is asked at a time; the others leave room for requests. */
const ASKED_MAX = 64;
/** With this many pending, no request may reserve anything. */
export const RELEASES_MAX = 16_384;
const PAUSE_MILLIS = 100;
/** After this time a request that was sent has reached the log or never will. */
const DOUBT_MILLIS = 10_000;

/** The reservations of one node that have to be given back. */
export class Reservations {
  readonly counts: ReservationCounts = { released: 0, left: 0 };
  readonly #init: ReservationsInit;
  readonly #lines = new Map<number, Line>();
  #pendingCount = 0;

  constructor(init: ReservationsInit) {
    this.#init = init;
  }

  /** How many have to be given back and are not known to be. */
  get pendingCount(): number {
    return this.#pendingCount;
  }

  /** No request may reserve anything until some were given back. */
  get isFull(): boolean {
    return this.#pendingCount >= RELEASES_MAX;
  }

  /** Gives reservations back. Those with an unknown outcome are included, as they may have been granted. */
  release(reserved: readonly Reserved[]): void {
    const nowMillis = this.#init.monotonicMillis();
    for (const { part, requestId, answer } of reserved) {
      if (answer === undefined || (!isGrant(answer) && isCertain(answer))) continue;
      const line = this.#lines.get(part.partition) ?? newLine();
      this.#lines.set(part.partition, line);
      this.#pendingCount += 1;
      line.waiting.add({
        refund: { ask: 'refund', userId: part.limits[0].userId, requestId },
        doubtUntilMillis: isGrant(answer) ? nowMillis : nowMillis + DOUBT_MILLIS,
        untilMillis: nowMillis + countedMillisMax(part),
        dueMillis: nowMillis,
      });
      this.#askNext(part.partition, line);
    }
  }

  /** Call every few milliseconds. */
  tick(): void {
    for (const [partition, line] of this.#lines) this.#askNext(partition, line);
  }

  #askNext(partition: number, line: Line): void {
    const { waiting, paused, isAsking } = line;
    if (isAsking) return;
    line.isAsking = true;
    const nowMillis = this.#init.monotonicMillis();
    for (const release of paused) {
      if (release.dueMillis > nowMillis) break;
      paused.delete(release);
      waiting.add(release);
    }
    for (const release of waiting) {
      if (line.askedCount >= ASKED_MAX) break;
      waiting.delete(release);
      this.#giveBack(release, partition, line);
    }
    line.isAsking = false;
    if (waiting.size + paused.size + line.askedCount === 0) this.#lines.delete(partition);
  }

  #giveBack(release: Release, partition: number, line: Line): void {
    const { monotonicMillis, deadlineMillis, ask } = this.#init;
    line.askedCount += 1;
    ask(
      release.refund,
      (answer) => {
        line.askedCount -= 1;
        const nowMillis = monotonicMillis();
        if (isToBeAskedAgain(release, answer, nowMillis)) {
          release.dueMillis = nowMillis + PAUSE_MILLIS;
          line.paused.add(release);
        } else {
          this.#pendingCount -= 1;
          if (isReleased(answer)) this.counts.released += 1;
          else this.counts.left += 1;
        }
        this.#askNext(partition, line);
      },
      monotonicMillis() + deadlineMillis,
    );
  }
}

function newLine(): Line {
  return { waiting: new Set(), paused: new Set(), askedCount: 0, isAsking: false };
}

function isReleased(answer: RefundAnswer): boolean {
  return answer.kind === 'refund' && answer.refund.refunded;
}

function isToBeAskedAgain(
  { doubtUntilMillis, untilMillis }: Release,
  answer: RefundAnswer,
  nowMillis: number,
): boolean {
  if (nowMillis >= untilMillis || isReleased(answer)) return false;
  return answer.kind === 'unavailable' || nowMillis < doubtUntilMillis;
}

/** How long a reservation can count at most: a window counter counts two windows. */
function countedMillisMax({ limits }: RequestPart): number {
  return 2 * Math.max(...limits.map(({ window }) => window.windowMillis));
}

/**
 * The time until which the partitions may answer the reservations of a request. If fail modes can let the request through, half of the time is
 * kept for asking the first part.
 */
export function reservationsUntil(
  others: readonly RequestPart[],
  nowMillis: number,
  deadlineMillis: number,
): number {
  const areClosed = others.every(({ limits }) => limits.every(({ rule }) => rule.failMode === 'closed'));
  return areClosed ? deadlineMillis : (nowMillis + deadlineMillis) / 2;
}
