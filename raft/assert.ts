/** Invariants, checked in production as well: there is no switch. What may happen in a sound program is no matter for these. */

/** An invariant that this program relies on did not hold. Always fatal: the process must stop, never go on. */
export class InvariantError extends Error {
  readonly code = 'INVARIANT';

  constructor(message: string) {
    super(`invariant violated: ${message}`);
    this.name = 'InvariantError';
  }
}

/** Checks an invariant; stays on in production. `message` says what was expected, with the values seen. */
export function assert(condition: boolean, message: string): asserts condition {
  if (!condition) throw new InvariantError(message);
}
