/**
 * The state of a request while it is open on this node, and what it took from this node's local fractions of
 * limits.
 */
import type { AskDone, Question } from '../api/question.ts';
import type { ListedRequest } from '../api/listed.ts';
import type { Unmatched } from '../api/refusals.ts';
import type { KnownCustomer } from './customer-cache.ts';
import type { DegradedDecisions, LocalTake } from './degraded-decisions.ts';
import type { MatchedLists } from './listed-limits.ts';
import type { MatchedLimit } from './matched-limit.ts';
import type { RuleSet } from './rule-set.ts';
import { type AnsweredPart, isAllowed } from './part-outcome.ts';

/** A question as it is matched. With lists (`listed`) it has no descriptors by name. */
export interface MatchedRequest extends Question {
  readonly listed?: ListedRequest;
}

/** A request that is open on this node. Its fields are updated as answers arrive. */
export interface Asking {
  readonly request: MatchedRequest;
  readonly deadlineMillis: number;
  /** Answers the caller. Shadow rules and local takes wrap it. */
  done: AskDone;
  /** The keys that kept the id by earlier rules were asked for an earlier grant. */
  isRecalled: boolean;
  /** The request is matched again after newer rules or records arrived; its shadow rules were asked before. */
  isAgain: boolean;
  /** Version of the rules that it was last matched with. */
  rulesVersion: number;
  /** Limits that no partition could decide; by their fail modes they have not refused the request so far. */
  undecided: readonly MatchedLimit[];
  /** The costs taken from this node's local fractions. All are given back if the request is not let through. */
  taken: readonly LocalTake[];
  /** A partition that this node leads denies it, so no other is asked for a grant. */
  isDeniedHere: boolean;
  /** The customer record that it is matched with. */
  customer: KnownCustomer | undefined;
  /** How often that record turned out to be outdated. */
  recordsLearned: number;
  /** Set if no rule matches the request: what the rules do with such requests. */
  unmatched: Unmatched | undefined;
  /** For a request of lists: what the rules say about each list. */
  lists: MatchedLists | undefined;
  /** Number of the open attempt; undefined if it reserves nothing. */
  attempt: number | undefined;
  /** The id that this node drew for a settlement that has none and goes to several partitions. */
  drawnId: string | undefined;
  /** The request is a settlement that some partition has charged or may have charged. */
  mayHaveCharged: boolean;
  /** The parts that were asked last for a grant, with their answers. */
  answered: readonly AnsweredPart[];
}

/** The empty list of most requests. */
export const NONE: readonly never[] = [];

/** A new open request. @param rulesVersion 0 before it was matched */
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

/** Prepares a request to be matched again. */
export function beginAgain(asking: Asking): void {
  asking.isAgain = true;
  asking.isRecalled = false;
  asking.attempt = undefined;
  asking.undecided = NONE;
  giveBackTaken(asking);
}

/**
 * Takes the costs from this node's fractions of the limits. If another limit denies the request later, they are
 * given back before the caller gets the answer.
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

/** How to go on with a request after the record of its customer was read. */
export interface GoOn {
  readonly asking: Asking;
  readonly ruleSet: RuleSet;
  /** Called if the record is the one that the request was matched with. */
  readonly goOn: () => void;
}
