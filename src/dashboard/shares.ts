/** How much was denied, now and before: sums over the minutes of a history. Pure. */
import { USAGE_OUTCOMES, type UsageOutcome, type UsageReport } from '../api/usage.ts';

type History = UsageReport['history'];
export type Sums = Readonly<Record<UsageOutcome, number>>;

export interface Compared {
  readonly now: Sums;
  /** Of as many minutes before; undefined: they are not kept. */
  readonly before: Sums | undefined;
}

/** @param history of `minutes`, or of twice as many @param minutes the last ones are now */
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

/** Denied, of all that was decided; undefined where nothing was. */
export function deniedShare({ allowed, denied }: Pick<Sums, 'allowed' | 'denied'>): number | undefined {
  const decided = allowed + denied;
  return decided === 0 ? undefined : denied / decided;
}

/** Rules in the order in which they deny; what one in shadow would have denied counts behind that. */
export function byDenials(rules: UsageReport['rules']): UsageReport['rules'] {
  return rules.toSorted((a, b) => b.denied - a.denied || b.wouldDeny - a.wouldDeny || b.allowed - a.allowed);
}
