/** An invariant of the limiter did not hold. Always fatal: the replica must stop. It is never input validation. */
export class LimiterAssertionError extends Error {
  override readonly name = 'LimiterAssertionError';
  readonly code = 'LIMITER_INVARIANT';
}

/** Checks an invariant; stays on in production. `message` says what was expected, with the values seen. */
export function assert(condition: boolean, message: string): asserts condition {
  if (!condition) throw new LimiterAssertionError(message);
}
