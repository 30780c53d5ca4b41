/**
 * What `MatchedRequests` gets from the node: the rules, the way to partitions, and limits on time and memory. Types
 * only.
 */
import type { ArrivalClock } from '../api/clocks.ts';
import type { Decision } from '../api/answer.ts';
import type { AllowRequest } from '../api/request.ts';
import type { DoneWith, UserRequest } from '../api/user-request.ts';
import type { DegradedDecisions } from './degraded-decisions.ts';
import type { RuleSet } from './rule-set.ts';

/** The dependencies and bounds of `MatchedRequests`. */
export interface MatchedRequestsInit extends ArrivalClock {
  /** The rules that this node knows; `starting`: it knows none yet. */
  readonly ruleSet: () => RuleSet | 'starting';
  /** The rules that were in force recently, see `EarlierRuleSets`. */
  readonly earlier: () => readonly RuleSet[];
  readonly partitionOf: (userId: string) => number;
  /**
   * Asks the leader of the partition, on whichever node; calls `done` once, at the latest one tick after the
   * deadline.
   */
  readonly ask: <R extends UserRequest>(request: R, done: DoneWith<R>, deadlineMillis: number) => void;
  /**
   * The denial that this node can give at once from its applied state, if it leads the partition of the request.
   * Undefined: the partition must be asked. Charges nothing and writes nothing.
   */
  readonly deniedHere: (request: AllowRequest) => Decision | undefined;
  /** Called with each decision of a shadow rule about a request that all other rules let through. */
  readonly tried: (ruleId: string, wouldAllow: boolean) => void;
  /** A number from 1 to `ATTEMPT_MAX` that no other attempt in this cluster has. */
  readonly newAttempt: () => number;
  readonly deadlineMillis: number;
  /** How many requests may wait for this node to learn newer rules; more are refused. */
  readonly waitingMax: number;
  /** Decides where no partition can and no rule is `closed`. */
  readonly degraded: DegradedDecisions;
}

/** Asks with the deadline of a request that arrives now. */
export type AskInTime = <R extends UserRequest>(request: R, done: DoneWith<R>) => void;
