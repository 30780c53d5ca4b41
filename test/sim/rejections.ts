import type { AllowAnswer } from '../../src/api/answer.ts';
/** Which answers say that a request does not count. */

/** A request with this answer must not be charged. */
export function isRejection(answer: AllowAnswer): boolean {
  switch (answer.kind) {
    case 'decision':
      return !answer.decision.allowed;
    case 'unavailable':
      return !answer.proposed;
    case 'invalid':
    case 'conflict':
      return true;
  }
}

/** A request with this answer was never proposed, and never will be. */
export function isNowhere(answer: AllowAnswer): boolean {
  switch (answer.kind) {
    case 'decision':
      return !answer.decision.allowed && answer.decision.decided.position === undefined;
    case 'unavailable':
      // It may be in a log that did not count it.
      return !answer.proposed && answer.reason !== 'customer_changed';
    case 'invalid':
    case 'conflict':
      return false;
  }
}
