/** A finding of `quorate doctor`: what was checked, the result, and what to do. */

/** `fail`: the node cannot start or cannot decide, or soon will not. `warn`: it works, but needs attention. */
export type FindingResult = 'ok' | 'warn' | 'fail';

/** The result of one check. */
export interface Finding {
  /** The subject of the check, such as `node 2: disk`. */
  readonly check: string;
  readonly result: FindingResult;
  /** The result in words. */
  readonly found: string;
  /** The step that solves it. Absent: none is needed. */
  readonly action?: string;
}

/** A check that passed. */
export function ok(check: string, found: string): Finding {
  return { check, result: 'ok', found };
}

/** A check that needs attention. */
export function warn(check: string, found: string, action: string): Finding {
  return { check, result: 'warn', found, action };
}

/** A check that failed. */
export function fail(check: string, found: string, action: string): Finding {
  return { check, result: 'fail', found, action };
}
