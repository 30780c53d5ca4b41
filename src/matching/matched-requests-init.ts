/** Whom requests under the limits of rules are asked of, and with which bounds. Types only. */
import type { Decision } from '../api/answer.ts';
import type { AllowRequest } from '../api/request.ts';
import type { DoneWith, UserRequest } from '../api/user-request.ts';
import type { DegradedDecisions } from './degraded-decisions.ts';
import type { RuleBook } from './rule-book.ts';

export interface MatchedRequestsInit {
  /** The rules that this node knows; `starting`: it knows of none yet. */
  readonly book: () => RuleBook | 'starting';
  /** The rules that were in force until lately, see `EarlierBooks`. */
  readonly earlier: () => readonly RuleBook[];
  readonly partitionOf: (userId: string) => number;
  /** Asks whoever leads; `done` is told once, at the latest a tick after the deadline. */
  readonly ask: <R extends UserRequest>(request: R, done: DoneWith<R>, deadlineMillis: number) => void;
  /**
   * The denial that this node would tell now without any log, if it leads the partition of the request; undefined: it must be
   * asked. Nothing is charged, and nobody is told.
   */
  readonly deniedHere: (request: AllowRequest) => Decision | undefined;
  /** To be told of every trial: what a rule in shadow says of a request that all others let through. */
  readonly tried: (ruleId: string, wouldAllow: boolean) => void;
  /** A number that no other attempt of this cluster has: 1 to `ATTEMPT_MAX`. */
  readonly newAttempt: () => number;
  readonly monotonicMillis: () => number;
  /** When what is asked now came. */
  readonly doorMillis: () => number;
  readonly deadlineMillis: number;
  /** Requests that wait for this node to learn the rules that a partition has; more are refused. */
  readonly waitingMax: number;
  /** To be asked where nobody can decide, and the rules say more than no. */
  readonly degraded: DegradedDecisions;
}

/** Until the deadline of what comes now. */
export type AskInTime = <R extends UserRequest>(request: R, done: DoneWith<R>) => void;
