/** What is known of a request that is under the limits of rules, while it is on its way. Types only. */
import type { DescribedDone, DescribedRequest } from '../api/described.ts';
import type { KnownCustomer } from './customer-cache.ts';
import type { MatchedLimit, RuleBook } from './rule-book.ts';

/** A request on its way. */
export interface Asking {
  readonly request: DescribedRequest;
  readonly deadlineMillis: number;
  readonly done: DescribedDone;
  /** It waited for other rules; those on trial were asked before. */
  isAgain: boolean;
  /** Of the rules that found its limits last. */
  rulesVersion: number;
  /** Limits that nobody could decide, and that are no reason to refuse it so far. */
  undecided: readonly MatchedLimit[];
  /** What it is matched with. */
  customer: KnownCustomer | undefined;
  /** How often that was of before. */
  recordsLearned: number;
}

/** What follows once the record of its customer was read. */
export interface Once {
  readonly asking: Asking;
  readonly book: RuleBook;
  /** It is the one that the request was matched with. */
  readonly goOn: () => void;
}
