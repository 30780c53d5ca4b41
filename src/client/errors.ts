/**
 * The errors of the client, as classes with a stable `code`. None of them is a grant. `isDefinite` is true if the
 * request was certainly not counted.
 */

/** The base class of all errors of this client. Check for it with `error instanceof QuorateError`. */
export class QuorateError extends Error {
  override readonly name: string = 'QuorateError';
  readonly code: string;
  /** False: the request may have been granted and counted, but its answer was lost. */
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

/** An option or an argument is out of its bounds. */
export class InvalidOptionError extends QuorateError {
  override readonly name = 'InvalidOptionError';
  readonly field: string;

  /** @param bound the rest of the sentence that begins with the name of the field */
  constructor(field: string, bound: string) {
    super('INVALID_OPTION', `${field} ${bound}`, { isDefinite: true });
    this.field = field;
  }
}

/** The request is malformed. Sending it again gives the same error. */
export class InvalidRequestError extends QuorateError {
  override readonly name = 'InvalidRequestError';
  readonly field: string;

  constructor(field: string, message: string) {
    super('INVALID_REQUEST', message, { isDefinite: true });
    this.field = field;
  }
}

/** The `requestId` belongs to another request, or to a grant that was refunded. Nothing was charged. */
export class RequestIdConflictError extends QuorateError {
  override readonly name = 'RequestIdConflictError';
  readonly field: string;

  constructor(field: string, message: string) {
    super('REQUEST_ID_CONFLICT', message, { isDefinite: true });
    this.field = field;
  }
}

/**
 * The cluster refuses requests from this client: the token is missing or invalid (401), its role is too low (403), or
 * the protocol differs.
 */
export class RefusedError extends QuorateError {
  override readonly name = 'RefusedError';
  readonly status: number;

  constructor(status: number, message: string) {
    super('REFUSED', message, { isDefinite: true });
    this.status = status;
  }
}

/** The cluster could not decide before the deadline. The request was certainly not counted. */
export class UnavailableError extends QuorateError {
  override readonly name = 'UnavailableError';
  /** The last known reason: a reason of the cluster, or `not_sent`. */
  readonly reason: string;

  constructor(reason: string, cause?: unknown) {
    super(
      'UNAVAILABLE',
      `the cluster could not decide before the deadline (${reason}); nothing was counted`,
      {
        isDefinite: true,
        cause,
      },
    );
    this.reason = reason;
  }
}

/** A request was sent, but no answer came before the deadline. It may have been granted and counted. */
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

/** Too many requests or waiting calls are open in this client. Nothing was sent. */
export class OverloadedError extends QuorateError {
  override readonly name = 'OverloadedError';

  constructor(field: string, bound: number) {
    super('OVERLOADED', `${bound} requests wait in this client, as many as ${field} allows`, {
      isDefinite: true,
    });
  }
}

/** The next permit comes later than `maxWaitMillis`. */
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

/** An operator has blocked the client that waits for a permit. */
export class BlockedError extends QuorateError {
  override readonly name = 'BlockedError';
  /** Time until the block ends, in milliseconds. Undefined: the block has no end, so waiting does not help. */
  readonly retryAfterMillis: number | undefined;

  constructor(retryAfterMillis: number | undefined, isDefinite: boolean) {
    const wait =
      retryAfterMillis === undefined ? 'waiting does not help' : `for ${Math.ceil(retryAfterMillis)} ms more`;
    super('BLOCKED', `blocked by an operator; ${wait}`, { isDefinite });
    this.retryAfterMillis = retryAfterMillis;
  }
}

/** No rule matches the request, and the rules deny such requests. Waiting does not help. */
export class UnmatchedError extends QuorateError {
  override readonly name = 'UnmatchedError';

  constructor(isDefinite: boolean) {
    super('UNMATCHED', 'no rule matches this request; waiting does not help: check its descriptors', {
      isDefinite,
    });
  }
}

/**
 * The cost is above the limit, or above the capacity of a bucket, so it can never be granted. Waiting does not help.
 */
export class CostAboveLimitError extends QuorateError {
  override readonly name = 'CostAboveLimitError';
  readonly field = 'cost';

  constructor(message: string) {
    super('COST_ABOVE_LIMIT', message, { isDefinite: true });
  }
}

/** The signal passed to `waitForPermit` was aborted. */
export class AbortedError extends QuorateError {
  override readonly name = 'AbortedError';

  constructor(cause: unknown, isDefinite: boolean) {
    super('ABORTED', 'the wait for a permit was aborted', { isDefinite, cause });
  }
}

/** The client is closed. */
export class ClosedError extends QuorateError {
  override readonly name = 'ClosedError';

  constructor(isDefinite: boolean) {
    super(
      'CLOSED',
      `the client is closed; the request ${isDefinite ? 'was not counted' : 'may have been counted'}`,
      {
        isDefinite,
      },
    );
  }
}
