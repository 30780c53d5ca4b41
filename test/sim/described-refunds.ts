/**
 * Users who refund the grant of a described request, at any node. Checks which reservations such a refund may reach,
 * and that nothing stays charged once its user got the answer.
 */
import type { RefundQuestionAnswer, RefundQuestionDone, RefundRequest } from '../../src/api/refund.ts';
import type { Question } from '../../src/api/question.ts';
import { isCurrent } from './described-questions.ts';
import { mustStay, type Round, wordsOfAsking } from './described-rounds.ts';
import type { Asked } from './id-ledger.ts';
import type { KnownReservation } from './settled-reservations.ts';
import type { SimNode } from './sim-node.ts';
import { check } from './story.ts';

/** A refund that a client requested from a node. */
export interface Refunding {
  readonly request: Question;
  readonly node: SimNode;
}

export class DescribedRefunds {
  /** By process and deadline; no two share them. */
  readonly #open = new Map<string, Refunding>();
  /** Refunds that users have requested, and those that were answered as done. */
  readonly #asked = new Set<string>();
  readonly #free = new Set<string>();
  /**
   * By key and id: the numbers of the attempts that a log has granted, each after the id of the one before was
   * forgotten; undefined: it reserved nothing.
   */
  readonly #granted = new Map<string, (number | undefined)[]>();
  /** By question: the keys under which users have requested its refund. */
  readonly #placesAsked = new Map<string, Set<string>>();
  /** Ids of reservations for which refunds of users were sent. */
  readonly #reached = new Set<string>();

  /** A user asks `node`. `done` gets the answer of its process, unless that comes after the process has ended. */
  ask(node: SimNode, request: Question, deadlineMillis: number, done: RefundQuestionDone): void {
    const { life } = node;
    const refunding = { request, node };
    node.inProcess((core) => {
      this.#asked.add(wordsOf(request));
      this.#open.set(processWords(node, node.arrives() + deadlineMillis), refunding);
      const { descriptors, requestId = '' } = request;
      core.requests.refund({ descriptors, requestId }, (answer, partition) => {
        if (!isCurrent(node, life)) return;
        if (isFreed(answer)) this.#free.add(wordsOf(request));
        done(answer, partition);
      });
    });
  }

  /** The user for whom a node asks this; undefined: for none. */
  of(node: SimNode, deadlineMillis: number): Refunding | undefined {
    return this.#open.get(processWords(node, deadlineMillis));
  }

  /** A user has refunded this, or wants to. */
  isAsked(request: Question): boolean {
    return this.#asked.has(wordsOf(request));
  }

  /** A log charges this. */
  charged({ userId, requestId = '', attempt }: Asked): void {
    if (requestId === '') return;
    const key = JSON.stringify([userId, requestId]);
    this.#granted.set(key, [...(this.#granted.get(key) ?? []), attempt]);
  }

  /** Whether a node asks for this on behalf of that user. @param known if it is a reservation */
  isFor({ request }: Refunding, requestId: string, known: KnownReservation | undefined): boolean {
    if (requestId === request.requestId) return true;
    return known !== undefined && mustStay(known.round) && wordsOf(known.asking.request) === wordsOf(request);
  }

  /** A node asks for the refund of a reservation, or of the grant itself, on behalf of a user. */
  reaches(
    { request }: Refunding,
    { userId, requestId }: RefundRequest,
    known: KnownReservation | undefined,
  ): void {
    if (known === undefined) {
      const words = wordsOf(request);
      this.#placesAsked.set(words, (this.#placesAsked.get(words) ?? new Set()).add(userId));
      return;
    }
    check(
      this.#grantsOf(known.round).includes(known.round.first?.request.attempt),
      () => `${requestId} is given back, and another attempt at ${wordsOfAsking(known.asking)} was granted`,
    );
    this.#reached.add(requestId);
  }

  isReached(requestId: string): boolean {
    return this.#reached.has(requestId);
  }

  /** Everything is healed, applied and answered. */
  checkSettled(reservations: readonly KnownReservation[], isCharged: (requestId: string) => boolean): void {
    for (const { asking, round, own } of reservations) {
      const grants = this.#grantsOf(round);
      const isGranted = grants.length === 1 && grants[0] === round.first?.request.attempt;
      const isFree = isGranted && this.#free.has(wordsOf(asking.request));
      // Other rules may lead a retry to another partition, where it is granted once more: a refund finds one of the
      // two.
      if (!isFree || this.#hasMoved(asking.request, round)) continue;
      const { requestId = '' } = own.request;
      check(
        !isCharged(requestId),
        () => `${wordsOfAsking(asking)} was given back, and ${requestId} is still charged`,
      );
    }
  }

  /** The attempts that the log of its first partition has granted under its id. */
  #grantsOf({ first }: Round): readonly (number | undefined)[] {
    return first === undefined ? [] : (this.#granted.get(placeOf({ first })) ?? []);
  }

  /** A refund of this request was requested under another key than that of this round. */
  #hasMoved(request: Question, { first }: Round): boolean {
    const asked = this.#placesAsked.get(wordsOf(request)) ?? new Set();
    return [...asked].some((userId) => userId !== first?.request.userId);
  }
}

function isFreed(answer: RefundQuestionAnswer): boolean {
  return answer.kind === 'refund' && answer.refund.refunded && answer.kept?.length === 0;
}

function placeOf({ first }: Pick<Round, 'first'>): string {
  return JSON.stringify([first?.request.userId, first?.request.requestId]);
}

function processWords({ id, life }: SimNode, deadlineMillis: number): string {
  return `${id}/${life}/${deadlineMillis}`;
}

function wordsOf({ descriptors, requestId }: Question): string {
  return JSON.stringify([[...descriptors].toSorted(([a], [b]) => (a < b ? -1 : 1)), requestId]);
}
