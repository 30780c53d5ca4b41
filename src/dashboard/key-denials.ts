/** What usage figures know of a key's denials, in words. Pure. */
import { USAGE_TOP_MAX, type UsageReport } from '../api/usage.ts';
import { clockTime, wholeNumber } from './words.ts';

/** One sentence for each rule that denied it; else what the absence of the key in the list means. */
export function denialsInWords(key: string, { top }: UsageReport): readonly string[] {
  if (top === undefined)
    return [
      'Denials by key are named to tokens, and in an open cluster to programs on the machine of the node.',
    ];
  const since = `since ${clockTime(top.fromMillis)}`;
  const denied = top.denied.filter((row) => row.key === key);
  if (denied.length > 0)
    return denied.map(({ rule, count, error }) => {
      const times =
        error === 0 ? wholeNumber(count) : `${wholeNumber(count - error)} to ${wholeNumber(count)}`;
      return `${times} denied by ${rule} ${since}`;
    });
  // Whoever is not named was denied less often than everybody who is.
  if (top.denied.length < USAGE_TOP_MAX) return [`No denial was counted ${since}.`];
  const least = Math.min(...top.denied.map(({ count }) => count));
  return [
    `At most ${wholeNumber(least)} were denied by any rule ${since}: it is not among the ${USAGE_TOP_MAX} keys that were denied most.`,
  ];
}
