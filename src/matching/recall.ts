/** Asks whether an earlier attempt under the same request id was granted, before a denial is told. It charges nothing. */
import type { AllowAnswer, Unavailable } from '../api/answer.ts';
import type { MatchedRequestsInit } from './matched-requests-init.ts';
import { TOO_LATE } from './node-refusals.ts';
import { earlierKeepers } from './earlier-books.ts';
import type { Asking } from './open-request.ts';
import type { RuleBook } from './rule-book.ts';
import { followsFailModes, isGrant, type Share, wantsOtherRules, withKey } from './share-outcome.ts';
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
  /** What to do if it was granted. Absent: that is the answer. */
  readonly ifGranted?: (() => void) | undefined;
  /** What to do if nothing was granted before. */
  readonly ifNone: () => void;
}

/** What was granted to an earlier attempt is granted still, whatever others say now. */
export function recall(
  { ask, monotonicMillis, waiting }: RecallInit,
  { first, asking, book, ifGranted, ifNone, maySkip }: Recall,
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
      else if (ifGranted !== undefined && isGrant(answer)) ifGranted();
      else if (answer.kind !== 'invalid') done(withKey(answer, [{ share: first, answer }]), partition);
      // What others denied meanwhile is no answer any more, and nothing was charged.
      else if (monotonicMillis() >= deadlineMillis) done(TOO_LATE, partition);
      else ifNone();
    },
    deadlineMillis,
  );
}

/**
 * The same where each of the earlier rules kept the id, one after the other; then `goOn`.
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
  const nowKept = shares[0]?.limits[0].userId;
  const keepers = earlierKeepers(init.earlier(), asking, nowKept, init.partitionOf);
  // What fail modes let through is let through without that.
  const maySkip = (answer: Unavailable): boolean =>
    shares.every((share) => followsFailModes({ share, answer }));
  const next = (place: number): void => {
    const keeper = keepers[place];
    if (keeper === undefined) return goOn();
    const ifNone = (): void => next(place + 1);
    // A settlement was charged only if every share remembers it. The caller gets the first share's answer, so that one is asked last.
    const ask = (left: number): void => {
      const ifGranted = left === 0 ? undefined : (): void => ask(left - 1);
      recall(init, { ...of, first: keeper[left]!, maySkip, ifGranted, ifNone });
    };
    ask(keeper.length - 1);
  };
  next(0);
}
