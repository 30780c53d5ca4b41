/** Says in words how often a key was denied, from the usage figures. Pure. */
import { USAGE_TOP_MAX, type UsageReport } from '../api/usage.ts';
import { clockTime, wholeNumber } from './words.ts';

/** One sentence for each rule that denied the key. If no rule is listed, says what that means. */
export function denialsInWords(key: string, { top }: UsageReport): readonly string[] {
  if (top === undefined)
    return ['Denials by key are shown to tokens only. In an open cluster, ask on the machine of the node.'];
  const since = `since ${clockTime(top.fromMillis)}`;
  const denied = top.denied.filter((row) => row.key === key);
  if (denied.length > 0)
    return denied.map(({ rule, count, error }) => {
      const times =
        error === 0 ? wholeNumber(count) : `${wholeNumber(count - error)} to ${wholeNumber(count)}`;
      return `${times} denied by ${rule} ${since}`;
    });
  // The list holds the keys with the most denials, so any other key has fewer.
  if (top.denied.length < USAGE_TOP_MAX) return [`No denial was counted ${since}.`];
  const least = Math.min(...top.denied.map(({ count }) => count));
  return [
    `At most ${wholeNumber(least)} requests were denied by any rule ${since}: the key is not among the ${USAGE_TOP_MAX} denied most.`,
  ];
}
