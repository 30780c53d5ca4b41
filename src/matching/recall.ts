/** Asks whether an earlier attempt under the same request id was granted, before a denial is told. It charges nothing. */
import type { AllowAnswer } from '../api/answer.ts';
import type { MatchedRequestsInit } from './matched-requests-init.ts';
import { TOO_LATE } from './node-refusals.ts';
import type { Asking } from './open-request.ts';
import type { RuleBook } from './rule-book.ts';
import { type Share, wantsOtherRules, withKey } from './share-outcome.ts';
import { requestFor } from './share-request.ts';

type Init = Pick<MatchedRequestsInit, 'ask' | 'monotonicMillis'>;

export interface Recall {
  readonly first: Share;
  readonly asking: Asking;
  readonly book: RuleBook;
  /** Asks all again: the partition knows other rules. */
  readonly again: (partition: number) => void;
  /** What to do if nothing was granted before. */
  readonly ifNone: () => void;
}

/** What was granted to an earlier attempt is granted still, whatever others say now. */
export function recall({ ask, monotonicMillis }: Init, { first, asking, book, again, ifNone }: Recall): void {
  const { request, deadlineMillis, done, undecided } = asking;
  if (request.requestId === undefined) {
    ifNone();
    return;
  }
  const { further: _, settle: _settled, ...wanted } = requestFor(first, request, request.requestId, book);
  ask(
    { ...wanted, ifRemembered: true },
    (answer: AllowAnswer, partition) => {
      // Nobody may know: what the share of this node refused is refused by that.
      const isUnknown = answer.kind === 'unavailable' && undecided.length > 0;
      if (wantsOtherRules(answer)) again(partition);
      else if (isUnknown) ifNone();
      else if (answer.kind !== 'invalid') done(withKey(answer, [{ share: first, answer }]), partition);
      // What others denied meanwhile is no answer any more, and nothing was charged.
      else if (monotonicMillis() >= deadlineMillis) done(TOO_LATE, partition);
      else ifNone();
    },
    deadlineMillis,
  );
}
