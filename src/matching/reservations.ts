/**
 * What was reserved for requests that are not granted is given back. No load refuses that: it is asked again until it is known, or
 * until what was reserved counts no more. What became of it is counted.
 */
import type { AllowAnswer } from '../api/answer.ts';
import type { RefundAnswer, RefundRequest } from '../api/refund.ts';
import type { AllowRequest } from '../api/request.ts';
import type { DoneWith } from '../api/user-request.ts';
import type { MatchedRequestsInit } from './matched-requests-init.ts';
import { type AnsweredShare, isCertain, isGrant, type Share } from './share-outcome.ts';

/** An id that no caller's request has, and no other attempt. */
export function attemptId(attempt: number): string {
  return `~${attempt.toString(36)}`;
}

/** The id of what an attempt reserves in a partition. */
export function reservationId(attempt: number, { partition }: Share): string {
  return `${attemptId(attempt)}.${partition}`;
}

/** To be asked for. */
export function reservationsFor(shares: readonly Share[], attempt: number): readonly Reserved[] {
  return shares.map((share) => ({ share, requestId: reservationId(attempt, share), answer: undefined }));
}

/** Asks for all of them at once. `done`: each is answered. */
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

/** What became of reservations. */
export interface ReservationCounts {
  /** Given back, because another limit denied the request. */
  released: number;
  /** Not given back: what was reserved counted no more before anybody could be asked, or no log held it. */
  left: number;
}

export interface Reserved extends AnsweredShare {
  readonly requestId: string;
  answer: AllowAnswer | undefined;
}

export interface ReservationsInit {
  /** Asks whoever leads; `done` is told once. */
  readonly ask: (request: RefundRequest, done: DoneWith<RefundRequest>, deadlineMillis: number) => void;
  readonly monotonicMillis: () => number;
  /** To give one back, before it is asked again. */
  readonly deadlineMillis: number;
}

/** One that is to be given back. */
interface Release {
  readonly refund: RefundRequest;
  /** Until then a log that does not hold it may still receive it, because nobody said that it was granted. */
  readonly doubtUntilMillis: number;
  /** It counts no more from then on. */
  readonly untilMillis: number;
  /** When it is asked again, if nobody could say. */
  dueMillis: number;
}

/** Those of one partition. */
interface Line {
  readonly waiting: Set<Release>;
  /** Nobody could say: to be asked again, in the order in which they are due. */
  readonly paused: Set<Release>;
  askedCount: number;
  /** Some are being asked for: whoever answers at once need not ask for the next. */
  isAsking: boolean;
}

/** So many of one partition are asked for at a time: they leave other requests room there. */
const ASKED_MAX = 64;
/** Beyond them no request reserves anything. */
export const RELEASES_MAX = 16_384;
const PAUSE_MILLIS = 100;
/** Whatever was on its way has come to a log by then, or never will. */
const DOUBT_MILLIS = 10_000;

export class Reservations {
  readonly counts: ReservationCounts = { released: 0, left: 0 };
  readonly #init: ReservationsInit;
  readonly #lines = new Map<number, Line>();
  #pendingCount = 0;

  constructor(init: ReservationsInit) {
    this.#init = init;
  }

  /** How many are to be given back, and it is not known that they were. */
  get pendingCount(): number {
    return this.#pendingCount;
  }

  /** Nothing more is to be reserved before some of them were given back. */
  get isFull(): boolean {
    return this.#pendingCount >= RELEASES_MAX;
  }

  /** What was not granted, or not to our knowledge, is given back as well: it may have been. */
  release(reserved: readonly Reserved[]): void {
    const nowMillis = this.#init.monotonicMillis();
    for (const { share, requestId, answer } of reserved) {
      if (answer === undefined || (!isGrant(answer) && isCertain(answer))) continue;
      const line = this.#lines.get(share.partition) ?? newLine();
      this.#lines.set(share.partition, line);
      this.#pendingCount += 1;
      line.waiting.add({
        refund: { ask: 'refund', userId: share.limits[0].userId, requestId },
        doubtUntilMillis: isGrant(answer) ? nowMillis : nowMillis + DOUBT_MILLIS,
        untilMillis: nowMillis + countedMillisMax(share),
        dueMillis: nowMillis,
      });
      this.#askNext(share.partition, line);
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

/** For how long a reservation counts at most: a counter looks at two windows. */
function countedMillisMax({ limits }: Share): number {
  return 2 * Math.max(...limits.map(({ window }) => window.windowMillis));
}

/**
 * Until when the shares of a request, but for the first, may take to reserve. Where nobody may decide these and the request is let
 * through all the same, there must be time left to ask the first.
 */
export function reservationsUntil(
  others: readonly Share[],
  nowMillis: number,
  deadlineMillis: number,
): number {
  const areClosed = others.every(({ limits }) => limits.every(({ rule }) => rule.failMode === 'closed'));
  return areClosed ? deadlineMillis : (nowMillis + deadlineMillis) / 2;
}
