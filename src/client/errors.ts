/**
 * What goes wrong when a cluster is asked, as named classes with a stable `code`. None of them is a grant. `isDefinite` says whether
 * it is certain that the request was counted nowhere.
 */

/** The base of all: `error instanceof QuorateError`. */
export class QuorateError extends Error {
  override readonly name: string = 'QuorateError';
  readonly code: string;
  /** False: the request may have been granted and counted, and nobody heard of it. */
  readonly isDefinite: boolean;

  constructor(
    code: string,
    message: string,
    options: { readonly isDefinite: boolean; readonly cause?: unknown },
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.isDefinite = options.isDefinite;
  }
}

/** An option or argument is out of its bound. */
export class InvalidOptionError extends QuorateError {
  override readonly name = 'InvalidOptionError';
  readonly field: string;

  /** @param bound follows the field in a sentence */
  constructor(field: string, bound: string) {
    super('INVALID_OPTION', `${field} ${bound}`, { isDefinite: true });
    this.field = field;
  }
}

/** The request can never be decided as it is. */
export class InvalidRequestError extends QuorateError {
  override readonly name = 'InvalidRequestError';
  readonly field: string;

  constructor(field: string, message: string) {
    super('INVALID_REQUEST', message, { isDefinite: true });
    this.field = field;
  }
}

/** Its `requestId` belongs to another request, or to a grant that was refunded. Nothing was charged. */
export class RequestIdConflictError extends QuorateError {
  override readonly name = 'RequestIdConflictError';
  readonly field: string;

  constructor(field: string, message: string) {
    super('REQUEST_ID_CONFLICT', message, { isDefinite: true });
    this.field = field;
  }
}

/** The cluster does not take the request from this client: no valid token (401), one of too low a role (403), another protocol. */
export class RefusedError extends QuorateError {
  override readonly name = 'RefusedError';
  readonly status: number;

  constructor(status: number, message: string) {
    super('REFUSED', message, { isDefinite: true });
    this.status = status;
  }
}

/** Nobody could decide before the deadline. The request certainly counted nowhere. */
export class UnavailableError extends QuorateError {
  override readonly name = 'UnavailableError';
  /** What was heard last: a reason of the cluster, `no_answer`, or `not_sent`. */
  readonly reason: string;

  constructor(reason: string, cause?: unknown) {
    super('UNAVAILABLE', `nobody could decide before the deadline (${reason}); nothing was counted`, {
      isDefinite: true,
      cause,
    });
    this.reason = reason;
  }
}

/** No answer came before the deadline to what may have been decided: it may have been granted and counted. */
export class IndefiniteError extends QuorateError {
  override readonly name = 'IndefiniteError';
  readonly reason: string;

  constructor(reason: string, cause?: unknown) {
    super('INDEFINITE', `no answer before the deadline (${reason}); the request may have been counted`, {
      isDefinite: false,
      cause,
    });
    this.reason = reason;
  }
}

/** A queue of this client is full. Nothing was sent. */
export class OverloadedError extends QuorateError {
  override readonly name = 'OverloadedError';

  constructor(field: string, bound: number) {
    super('OVERLOADED', `${bound} requests wait in this client, as many as ${field} allows`, {
      isDefinite: true,
    });
  }
}

/** The next permit comes later than `waitForPermit` was to wait. */
export class PermitTimeoutError extends QuorateError {
  override readonly name = 'PermitTimeoutError';
  readonly retryAfterMillis: number;

  constructor(retryAfterMillis: number, isDefinite: boolean) {
    super('PERMIT_TIMEOUT', `no permit in time; the next comes in ${Math.ceil(retryAfterMillis)} ms`, {
      isDefinite,
    });
    this.retryAfterMillis = retryAfterMillis;
  }
}

/** Whoever waits for a permit is blocked by an operator. */
export class BlockedError extends QuorateError {
  override readonly name = 'BlockedError';
  /** Until the block ends; undefined: it has no end, and no wait helps. */
  readonly retryAfterMillis: number | undefined;

  constructor(retryAfterMillis: number | undefined, isDefinite: boolean) {
    const wait =
      retryAfterMillis === undefined ? 'waiting does not help' : `for ${Math.ceil(retryAfterMillis)} ms more`;
    super('BLOCKED', `blocked by an operator; ${wait}`, { isDefinite });
    this.retryAfterMillis = retryAfterMillis;
  }
}

/** No rule matches the request that waits for a permit, and the rules of the cluster deny such requests: no wait helps. */
export class UnmatchedError extends QuorateError {
  override readonly name = 'UnmatchedError';

  constructor(isDefinite: boolean) {
    super('UNMATCHED', 'no rule is for this request; waiting does not help: check its descriptors', {
      isDefinite,
    });
  }
}

/** More was asked for at once than a limit, or what fits into its bucket, ever lets through: no wait helps. */
export class CostAboveLimitError extends QuorateError {
  override readonly name = 'CostAboveLimitError';
  readonly field = 'cost';

  constructor(message: string) {
    super('COST_ABOVE_LIMIT', message, { isDefinite: true });
  }
}

/** The signal given to `waitForPermit` was aborted. */
export class AbortedError extends QuorateError {
  override readonly name = 'AbortedError';

  constructor(cause: unknown, isDefinite: boolean) {
    super('ABORTED', 'the wait for a permit was aborted', { isDefinite, cause });
  }
}

/** The client was closed. */
export class ClosedError extends QuorateError {
  override readonly name = 'ClosedError';

  constructor(isDefinite: boolean) {
    super(
      'CLOSED',
      `the client is closed; the request ${isDefinite ? 'counted nowhere' : 'may have counted'}`,
      {
        isDefinite,
      },
    );
  }
}
