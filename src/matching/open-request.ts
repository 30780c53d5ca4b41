/**
 * What is known of a request that is under the limits of rules, while it is on its way, and what this node took for it from its own
 * shares. It asks nobody.
 */
import type { AskDone, Question } from '../api/question.ts';
import type { ListedRequest } from '../api/listed.ts';
import type { Unmatched } from '../api/unmatched.ts';
import type { KnownCustomer } from './customer-cache.ts';
import type { DegradedDecisions, LocalTake } from './degraded-decisions.ts';
import type { MatchedLists } from './listed-limits.ts';
import type { MatchedLimit } from './matched-limit.ts';
import type { RuleBook } from './rule-book.ts';
import { type AnsweredShare, isAllowed } from './share-outcome.ts';

/** Of lists of descriptors it has no descriptors by name. */
export interface MatchedRequest extends Question {
  readonly listed?: ListedRequest;
}

/** A request on its way. */
export interface Asking {
  readonly request: MatchedRequest;
  readonly deadlineMillis: number;
  /** Rules in shadow listen to it. */
  done: AskDone;
  /** Who kept its id by earlier rules was asked whether it was granted before. */
  isRecalled: boolean;
  /** It waited for other rules; those on trial were asked before. */
  isAgain: boolean;
  /** Of the rules that found its limits last. */
  rulesVersion: number;
  /** Limits that nobody could decide, and that are no reason to refuse it so far. */
  undecided: readonly MatchedLimit[];
  /** What this node took for it from its own shares. A request that is not let through leaves none of it. */
  taken: readonly LocalTake[];
  /** This node denies it by what it leads itself: nobody is asked for a grant. */
  isDeniedHere: boolean;
  /** What it is matched with. */
  customer: KnownCustomer | undefined;
  /** How often that was of before. */
  recordsLearned: number;
  /** If no rule matches it: what the document does with such requests. */
  unmatched: Unmatched | undefined;
  /** Of lists: what the rules say of each. */
  lists: MatchedLists | undefined;
  /** The number of the attempt that is on its way; undefined if it reserves nothing. */
  attempt: number | undefined;
  /** The id that this node drew for a settlement in several partitions that came without one. */
  drawnId: string | undefined;
  /** It is a settlement, and a partition has charged it or may have. */
  mayHaveCharged: boolean;
  /** Who was asked last for a grant, and what each of them answered. */
  answered: readonly AnsweredShare[];
}

/** The empty list that most requests share, as they never put anything into one. */
export const NONE: readonly never[] = [];

/** @param rulesVersion 0 while nothing was found by any */
export function newAsking(
  request: MatchedRequest,
  deadlineMillis: number,
  done: AskDone,
  rulesVersion = 0,
): Asking {
  return {
    request,
    deadlineMillis,
    done,
    isRecalled: false,
    isAgain: false,
    rulesVersion,
    undecided: NONE,
    taken: NONE,
    isDeniedHere: false,
    customer: undefined,
    recordsLearned: 0,
    unmatched: undefined,
    lists: undefined,
    attempt: undefined,
    drawnId: undefined,
    mayHaveCharged: false,
    answered: NONE,
  };
}

/** It is to be matched once more. */
export function beginAgain(asking: Asking): void {
  asking.isAgain = true;
  asking.isRecalled = false;
  asking.attempt = undefined;
  asking.undecided = NONE;
  giveBackTaken(asking);
}

/**
 * Takes the shares of this node. Another limit may deny the request after that: then it gives them back before the answer is told.
 *
 * @returns milliseconds until the costs would fit; 0: they were taken
 */
export function takeLocal(
  asking: Asking,
  limits: readonly MatchedLimit[],
  degraded: DegradedDecisions,
): number {
  const take = degraded.take(limits);
  if (take.waitMillis > 0) return take.waitMillis;
  asking.taken = [...asking.taken, take];
  const { done } = asking;
  asking.done = (answer, partition) => {
    if (!isAllowed(answer)) giveBackTaken(asking);
    done(answer, partition);
  };
  return 0;
}

function giveBackTaken(asking: Asking): void {
  for (const { giveBack } of asking.taken) giveBack();
  asking.taken = NONE;
}

/** What follows once the record of its customer was read. */
export interface Once {
  readonly asking: Asking;
  readonly book: RuleBook;
  /** It is the one that the request was matched with. */
  readonly goOn: () => void;
}
