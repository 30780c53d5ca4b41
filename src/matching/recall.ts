/** Asks whether an earlier attempt under the same request id was granted, before a denial is told. It charges nothing. */
import type { AllowAnswer, Unavailable } from '../api/answer.ts';
import type { MatchedRequestsInit } from './matched-requests-init.ts';
import { TOO_LATE } from './node-refusals.ts';
import { earlierKeepers } from './earlier-books.ts';
import { type Asking, NONE } from './open-request.ts';
import type { RuleBook } from './rule-book.ts';
import { followsFailModes, type Share, wantsOtherRules, withKey } from './share-outcome.ts';
import { requestFor } from './share-request.ts';
import type { WaitingForRules } from './waiting-for-rules.ts';

export interface RecallInit extends Pick<
  MatchedRequestsInit,
  'ask' | 'earlier' | 'monotonicMillis' | 'partitionOf'
> {
  /** A partition knows other rules: all is asked again. */
  readonly waiting: WaitingForRules;
}

interface Recalling {
  readonly asking: Asking;
  readonly book: RuleBook;
}

interface Recall extends Recalling {
  readonly first: Share;
  /** Nobody may know, and the request is asked all the same. Absent: it is not. */
  readonly maySkip?: (answer: Unavailable) => boolean;
  /** What to do if nothing was granted before. */
  readonly ifNone: () => void;
}

/** What was granted to an earlier attempt is granted still, whatever others say now. */
export function recall(
  { ask, monotonicMillis, waiting }: RecallInit,
  { first, asking, book, ifNone, maySkip }: Recall,
): void {
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
      const isUnknown = answer.kind === 'unavailable' && (undecided.length > 0 || maySkip?.(answer) === true);
      if (wantsOtherRules(answer)) waiting.add(asking, partition);
      else if (isUnknown) ifNone();
      else if (answer.kind !== 'invalid') done(withKey(answer, [{ share: first, answer }]), partition);
      // What others denied meanwhile is no answer any more, and nothing was charged.
      else if (monotonicMillis() >= deadlineMillis) done(TOO_LATE, partition);
      else ifNone();
    },
    deadlineMillis,
  );
}

/**
 * The same of each key that kept the id by earlier rules, one after the other; then `goOn`.
 *
 * @param shares that are asked next, by the rules in force; none: no rule limits it
 */
export function recallEarlier(
  init: RecallInit,
  shares: readonly Share[],
  of: Recalling,
  goOn: () => void,
): void {
  const { asking } = of;
  asking.isRecalled = true;
  // What a settlement has charged so far, other partitions still have to charge.
  const isPart = asking.request.settle === true && asking.isAgain;
  const nowKept = shares[0]?.limits[0].userId;
  const keepers = isPart ? NONE : earlierKeepers(init.earlier(), asking, nowKept, init.partitionOf);
  // What fail modes let through is let through without that.
  const maySkip = (answer: Unavailable): boolean =>
    shares.every((share) => followsFailModes({ share, answer }));
  const next = (place: number): void => {
    const first = keepers[place];
    if (first === undefined) goOn();
    else recall(init, { ...of, first, maySkip, ifNone: () => next(place + 1) });
  };
  next(0);
}
