/** Shortens lists of ids in messages. */

const LISTED_MAX = 10;

/** The ids separated by commas, with the rest as a number if there are many. */
export function listed(ids: readonly number[]): string {
  const more = ids.length > LISTED_MAX ? ` and ${ids.length - LISTED_MAX} others` : '';
  return `${ids.slice(0, LISTED_MAX).join(', ')}${more}`;
}
