/** Always-on assertions for the limiter. A broken invariant must stop the replica; it is never input validation. */

export class LimiterAssertionError extends Error {
  override readonly name = 'LimiterAssertionError';
  readonly code = 'limiter_assertion';
}

export function assert(condition: boolean, message: string): asserts condition {
  if (!condition) throw new LimiterAssertionError(message);
}
