/** An invariant of the limiter did not hold. Always fatal: the replica must stop. It is never input validation. */
export class LimiterAssertionError extends Error {
  override readonly name = 'LimiterAssertionError';
  readonly code = 'LIMITER_INVARIANT';
}

/**
 * Checks an invariant; stays on in production. `message` says what was expected; each `{}` in it is one of the values seen.
 * It is put together only on failure: a text per check cost more than what was checked.
 */
export function assert(
  condition: boolean,
  message: string,
  ...values: readonly unknown[]
): asserts condition {
  if (!condition) throw new LimiterAssertionError(withValues(message, values));
}

function withValues(message: string, values: readonly unknown[]): string {
  let next = 0;
  return message.replaceAll('{}', () => String(values[next++]));
}
