import type { AllowAnswer } from '../../src/api/answer.ts';
/** Which answers say that a request does not count. */

/** Whoever is told this must not be charged for it. */
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

/** What is told this reached no log, and never will. */
export function isNowhere(answer: AllowAnswer): boolean {
  switch (answer.kind) {
    case 'decision':
      return !answer.decision.allowed && answer.decision.decided.position === undefined;
    case 'unavailable':
      // It may be in a log that counted it nowhere.
      return !answer.proposed && answer.reason !== 'customer_changed';
    case 'invalid':
    case 'conflict':
      return false;
  }
}
