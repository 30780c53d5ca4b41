/** Invariants, checked in production as well: there is no switch. What may happen in a sound program is no matter for these. */

/** An invariant that this program relies on did not hold. Always fatal: the process must stop, never go on. */
export class InvariantError extends Error {
  readonly code = 'INVARIANT';

  constructor(message: string) {
    super(`invariant violated: ${message}`);
    this.name = 'InvariantError';
  }
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
  if (!condition) throw new InvariantError(withValues(message, values));
}

function withValues(message: string, values: readonly unknown[]): string {
  let next = 0;
  return message.replaceAll('{}', () => String(values[next++]));
}
