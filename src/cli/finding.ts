/** What `quorate doctor` found: each in words, with what to do about it. */

export type FindingResult = 'ok' | 'warn' | 'fail';

export interface Finding {
  /** What was looked at, as `node 2: disk`. */
  readonly check: string;
  /** `fail`: a node does not start, or decides nothing, or soon. `warn`: it works, and somebody should look. */
  readonly result: FindingResult;
  /** What is so. */
  readonly found: string;
  /** What to do; absent where nothing is to be done. */
  readonly action?: string;
}

export function ok(check: string, found: string): Finding {
  return { check, result: 'ok', found };
}

export function warn(check: string, found: string, action: string): Finding {
  return { check, result: 'warn', found, action };
}

export function fail(check: string, found: string, action: string): Finding {
  return { check, result: 'fail', found, action };
}
