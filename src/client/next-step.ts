/**
 * What follows from what was heard of an attempt: the one place that says what may be repeated, and which errors are definite. Pure.
 *
 * Repeated is what certainly counted nowhere, and what has an id, under which it counts once. What may have counted and has no id is
 * never repeated.
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

/** Of one attempt. */
export type Heard =
  | Reading
  /** The node took no request of this client, or could not read it. Nothing was asked. */
  | { readonly kind: 'refused'; readonly status: number; readonly message: string }
  /** No answer that can be read. `isSent` false: certainly nothing reached a node. */
  | { readonly kind: 'silent'; readonly isSent: boolean; readonly error: Error };

/** What is known of the request. */
export interface Asked {
  /** It has an id. */
  readonly isRepeatable: boolean;
  /** An attempt before may have been counted. */
  readonly mayHaveCounted: boolean;
  /** 1 and more, that which was heard of included. */
  readonly attempts: number;
  /** Until its deadline. */
  readonly leftMillis: number;
}

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
/** As nodes that are overloaded ask for. */
const OVERLOADED_MILLIS = 1_000;

/** @param random from 0 to below 1 */
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

/** The bounds of every cost are checked before it is sent: what a node refuses is above a limit. */
function invalidError(field: string, message: string): QuorateError {
  return field === 'cost' ? new CostAboveLimitError(message) : new InvalidRequestError(field, message);
}

/** What is certain of this attempt says nothing of one before, which other rules or another token may have let through. */
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

/** Exponential, with full jitter: from 0 to a bound that doubles with each attempt. */
export function backoffMillis(attempts: number, random: number): number {
  return random * Math.min(WAIT_MILLIS_MAX, WAIT_MILLIS * 2 ** (attempts - 1));
}

export function undecidedError(mayHaveCounted: boolean, reason: string, cause?: unknown): QuorateError {
  return mayHaveCounted ? new IndefiniteError(reason, cause) : new UnavailableError(reason, cause);
}
