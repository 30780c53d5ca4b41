/**
 * Decides what to do after an attempt: return the answer, repeat the request, or throw an error. This is the only place
 * that decides what may be repeated, and which errors are definite. Pure functions.
 *
 * An attempt is repeated if it was certainly not counted, or if the request has an id, under which the cluster counts
 * it once. A request without an id that may have been counted is never repeated.
 */
import {
  CostAboveLimitError,
  IndefiniteError,
  InvalidRequestError,
  type QuorateError,
  RefusedError,
  RequestIdConflictError,
  UnavailableError,
} from './errors.ts';
import type { PermitAnswer, Reading } from './permit.ts';

/** The result of one attempt. */
export type Heard =
  | Reading
  /** The node refuses requests of this client, or could not read the batch. Nothing was decided. */
  | { readonly kind: 'refused'; readonly status: number; readonly message: string }
  /** There was no readable answer. If `isSent` is false, nothing reached a node. */
  | { readonly kind: 'silent'; readonly isSent: boolean; readonly error: Error };

/** The facts about the request. */
export interface Asked {
  /** The request has an id. */
  readonly isRepeatable: boolean;
  /** An earlier attempt may have been counted. */
  readonly mayHaveCounted: boolean;
  /** Number of attempts so far, including this one. */
  readonly attempts: number;
  /** Time until the deadline. */
  readonly leftMillis: number;
}

/** The next step. */
export type NextStep =
  | { readonly kind: 'answer'; readonly answer: PermitAnswer }
  | { readonly kind: 'error'; readonly error: QuorateError }
  | {
      readonly kind: 'retry';
      readonly waitMillis: number;
      readonly reason: string;
      readonly mayHaveCounted: boolean;
      readonly cause?: Error;
    };

const WAIT_MILLIS = 20;
const WAIT_MILLIS_MAX = 1_000;
/** The retry-after of overloaded nodes. */
const OVERLOADED_MILLIS = 1_000;

/**
 * Decides what to do after an attempt.
 *
 * @param random at least 0 and below 1
 */
export function nextStep(heard: Heard, asked: Asked, random: number): NextStep {
  switch (heard.kind) {
    case 'answer':
      return { kind: 'answer', answer: heard.answer };
    case 'invalid':
      return failed(asked, invalidError(heard.field, heard.message));
    case 'conflict':
      return failed(asked, new RequestIdConflictError(heard.field, heard.message));
    case 'refused':
      return failed(asked, new RefusedError(heard.status, heard.message));
    case 'unavailable':
      return maybeRetry(asked, { reason: heard.reason, mayHaveCounted: heard.isProposed }, random);
    case 'silent': {
      const reason = heard.isSent ? 'no_answer' : 'not_sent';
      return maybeRetry(asked, { reason, mayHaveCounted: heard.isSent, cause: heard.error }, random);
    }
  }
}

/** The client checks the bounds of a cost before it sends, so a cost that a node refuses is above a limit. */
function invalidError(field: string, message: string): QuorateError {
  return field === 'cost' ? new CostAboveLimitError(message) : new InvalidRequestError(field, message);
}

/**
 * This attempt was certainly not counted, but an earlier one may have been, under other rules or with another token.
 */
function failed({ mayHaveCounted }: Asked, error: QuorateError): NextStep {
  return { kind: 'error', error: mayHaveCounted ? new IndefiniteError(error.message, error) : error };
}

interface Undecided {
  readonly reason: string;
  readonly mayHaveCounted: boolean;
  readonly cause?: Error;
}

function maybeRetry(asked: Asked, { reason, cause, ...undecided }: Undecided, random: number): NextStep {
  const mayHaveCounted = asked.mayHaveCounted || undecided.mayHaveCounted;
  const waitMillis =
    reason === 'overloaded' ? OVERLOADED_MILLIS * (1 + random) : backoffMillis(asked.attempts, random);
  if ((mayHaveCounted && !asked.isRepeatable) || waitMillis >= asked.leftMillis)
    return { kind: 'error', error: undecidedError(mayHaveCounted, reason, cause) };
  return { kind: 'retry', waitMillis, reason, mayHaveCounted, ...(cause !== undefined && { cause }) };
}

/**
 * Exponential backoff with full jitter, in milliseconds: a random time from 0 to a bound that doubles with each
 * attempt.
 */
export function backoffMillis(attempts: number, random: number): number {
  return random * Math.min(WAIT_MILLIS_MAX, WAIT_MILLIS * 2 ** (attempts - 1));
}

/** Returns the error for a request that got no decision before its deadline. */
export function undecidedError(mayHaveCounted: boolean, reason: string, cause?: unknown): QuorateError {
  return mayHaveCounted ? new IndefiniteError(reason, cause) : new UnavailableError(reason, cause);
}
