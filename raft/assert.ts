/**
 * Invariants: conditions that hold unless this program has a bug. They are checked in production as well; there is
 * no switch to turn them off. Errors that can happen in a correct program (bad input, a full disk) are not
 * invariants.
 */

/** A broken invariant. Always fatal: the process must stop. */
export class InvariantError extends Error {
  readonly code = 'INVARIANT';

  constructor(message: string) {
    super(`invariant violated: ${message}`);
    this.name = 'InvariantError';
  }
}

/**
 * Throws an `InvariantError` unless `condition` holds.
 *
 * @param message what was expected; each `{}` in it is replaced by the next of `values`, but only on failure,
 * because building a string for every check costs more than the check.
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
