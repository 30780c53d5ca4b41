/**
 * Asks, before a denial is answered, whether an earlier attempt with the same request id was granted. This charges
 * nothing.
 */
import type { AllowAnswer, Unavailable } from '../api/answer.ts';
import type { MatchedRequestsInit } from './matched-requests-init.ts';
import type { Asking } from './open-request.ts';
import { TOO_LATE } from './node-refusals.ts';
import { earlierKeepers } from './earlier-rule-sets.ts';
import type { RuleSet } from './rule-set.ts';
import { followsFailModes, isGrant, type RequestPart, wantsOtherRules, withKey } from './part-outcome.ts';
import { requestFor } from './part-request.ts';
import type { WaitingForRules } from './waiting-for-rules.ts';

/** The arguments of recalls. */
export interface RecallInit extends Pick<
  MatchedRequestsInit,
  'ask' | 'earlier' | 'monotonicMillis' | 'partitionOf'
> {
  /** Requests that are matched again because a partition has other rules. */
  readonly waiting: WaitingForRules;
}

interface Recalling {
  readonly asking: Asking;
  readonly ruleSet: RuleSet;
}

interface Recall extends Recalling {
  readonly first: RequestPart;
  /** If no partition can say whether it was granted: whether to go on as if it was not. Absent: never. */
  readonly maySkip?: (answer: Unavailable) => boolean;
  /** Called if it was granted. Absent: the grant is the answer. */
  readonly ifGranted?: (() => void) | undefined;
  /** Called if it was not granted before. */
  readonly ifNone: () => void;
}

/**
 * Asks the part that keeps the id whether an earlier attempt was granted: that grant still stands. Calls `ifNone`
 * at once for a request without id.
 */
export function recall(
  { ask, monotonicMillis, waiting }: RecallInit,
  { first, asking, ruleSet, ifGranted, ifNone, maySkip }: Recall,
): void {
  const { request, deadlineMillis, done, undecided } = asking;
  if (request.requestId === undefined) {
    ifNone();
    return;
  }
  const { further: _, settle: _settled, ...wanted } = requestFor(first, request, request.requestId, ruleSet);
  ask(
    { ...wanted, ifRemembered: true },
    (answer: AllowAnswer, partition) => {
      // If the partition cannot answer and the node decides by fail modes, that decision stands.
      const isUnknown = answer.kind === 'unavailable' && (undecided.length > 0 || maySkip?.(answer) === true);
      if (wantsOtherRules(answer)) waiting.add(asking, partition);
      else if (isUnknown) ifNone();
      else if (ifGranted !== undefined && isGrant(answer)) ifGranted();
      else if (answer.kind !== 'invalid') done(withKey(answer, [{ part: first, answer }]), partition);
      // It is too late for the denial: limits may have changed, and nothing was charged.
      else if (monotonicMillis() >= deadlineMillis) done(TOO_LATE, partition);
      else ifNone();
    },
    deadlineMillis,
  );
}

/**
 * Asks the keys that kept the id by earlier rules, one after the other. Calls `goOn` if none of them remembers a
 * grant.
 *
 * @param parts the parts by the rules in force, which are asked next; empty: no rule limits the request
 */
export function recallEarlier(
  init: RecallInit,
  parts: readonly RequestPart[],
  of: Recalling,
  goOn: () => void,
): void {
  const { asking } = of;
  asking.isRecalled = true;
  const nowKept = parts[0]?.limits[0].userId;
  const keepers = earlierKeepers(init.earlier(), asking, nowKept, init.partitionOf);
  // A request that may be let through by fail modes need not wait for this answer.
  const maySkip = (answer: Unavailable): boolean => parts.every((part) => followsFailModes({ part, answer }));
  const next = (place: number): void => {
    const keeper = keepers[place];
    if (keeper === undefined) return goOn();
    const ifNone = (): void => next(place + 1);
    // A settlement was charged only if every part remembers it. The answer of the first part is the answer, so it
    // is asked last.
    const ask = (left: number): void => {
      const ifGranted = left === 0 ? undefined : (): void => ask(left - 1);
      recall(init, { ...of, first: keeper[left]!, maySkip, ifGranted, ifNone });
    };
    ask(keeper.length - 1);
  };
  next(0);
}
