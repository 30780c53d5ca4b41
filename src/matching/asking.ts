/** What is known of a request that is under the limits of rules, while it is on its way. Types only. */
import type { AllowAnswer } from '../api/answer.ts';
import type { DescribedDone, DescribedRequest } from '../api/described.ts';
import type { KnownCustomer } from './customer-cache.ts';
import type { MatchedLimit, RuleBook } from './rule-book.ts';
import type { Share } from './share-outcome.ts';

/** What became of reservations. */
export interface ReservationCounts {
  /** Given back, because another limit denied the request. */
  released: number;
  /** Not known to be given back: nobody could be asked, or the log held none. Those that are granted yet stay charged. */
  left: number;
}

/** A request on its way. */
export interface Asking {
  readonly request: DescribedRequest;
  readonly deadlineMillis: number;
  readonly done: DescribedDone;
  /** It waited for other rules; those on trial were asked before. */
  isAgain: boolean;
  /** Limits that nobody could decide, and that are no reason to refuse it so far. */
  undecided: readonly MatchedLimit[];
  /** What it is matched with. */
  customer: KnownCustomer | undefined;
  /** How often that was of before. */
  recordsLearned: number;
}

export interface Reserved {
  readonly share: Share;
  readonly requestId: string;
  answer: AllowAnswer | undefined;
}

/** What follows once the record of its customer was read. */
export interface Once {
  readonly asking: Asking;
  readonly book: RuleBook;
  /** It is the one that the request was matched with. */
  readonly goOn: () => void;
}
