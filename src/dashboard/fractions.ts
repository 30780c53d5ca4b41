/** Sums the minutes of a usage history, and computes the denied fraction now and before. Pure. */
import { USAGE_OUTCOMES, type UsageOutcome, type UsageReport } from '../api/usage.ts';

type History = UsageReport['history'];
/** Answers by outcome. */
export type Sums = Readonly<Record<UsageOutcome, number>>;

/** Sums of the last minutes and of the minutes before them. */
export interface Compared {
  readonly now: Sums;
  /** Sums of as many minutes before; undefined if nodes do not keep them. */
  readonly before: Sums | undefined;
}

/**
 * Sums the last `minutes` and, if the history is long enough, as many before them.
 *
 * @param history covers `minutes`, or twice as many
 */
export function compared(history: History, minutes: number): Compared {
  const { length } = history.allowed;
  return {
    now: sumsOf(history, Math.max(0, length - minutes), length),
    before: length < 2 * minutes ? undefined : sumsOf(history, length - 2 * minutes, length - minutes),
  };
}

function sumsOf(history: History, from: number, to: number): Sums {
  const sums = USAGE_OUTCOMES.map((outcome) => [
    outcome,
    history[outcome].slice(from, to).reduce((sum, count) => sum + count, 0),
  ]);
  return Object.fromEntries(sums) as Record<UsageOutcome, number>;
}

/** Denied fraction of all decisions; undefined if there were none. */
export function deniedFraction({ allowed, denied }: Pick<Sums, 'allowed' | 'denied'>): number | undefined {
  const decided = allowed + denied;
  return decided === 0 ? undefined : denied / decided;
}

/** Sorts rules by denials, then by the denials a shadow rule would have made, then by grants. */
export function byDenials(rules: UsageReport['rules']): UsageReport['rules'] {
  return rules.toSorted((a, b) => b.denied - a.denied || b.wouldDeny - a.wouldDeny || b.allowed - a.allowed);
}
