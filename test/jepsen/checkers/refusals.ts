/** A malformed request is refused even during faults: a user that is not valid text has no budget. */
import type { Operation } from '../history.ts';
import { type CheckResult, Findings } from './result.ts';

/** The name prefix that the history gives users whose bytes are not UTF-8. The rest of the name is the bytes. */
export const MALFORMED_USER = 'not UTF-8: ';

export function checkRefusals(history: readonly Operation[]): CheckResult {
  const findings = new Findings('refusals');
  for (const { user, status, node, error } of history) {
    if (!user.startsWith(MALFORMED_USER)) continue;
    findings.tally('asked');
    if (status === 400) findings.tally('refused');
    // Without an answer there is nothing to check.
    else if (status !== 0) findings.add(`node ${node} answered ${status} (${error}) for the user '${user}'`);
  }
  return findings.result();
}
