/** An invariant of the limiter did not hold. Always fatal: the replica must stop. Never used to validate input. */
export class LimiterAssertionError extends Error {
  override readonly name = 'LimiterAssertionError';
  readonly code = 'LIMITER_INVARIANT';
}

/**
 * Checks an invariant; stays on in production. Each `{}` in `message` is replaced by one of `values`. The text is built
 * only on failure, because building it for each check costs more than the check.
 *
 * @throws LimiterAssertionError
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
