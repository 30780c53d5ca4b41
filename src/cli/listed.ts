/** Ids in a sentence, so that it stays one. */

const LISTED_MAX = 10;

export function listed(ids: readonly number[]): string {
  const more = ids.length > LISTED_MAX ? ` and ${ids.length - LISTED_MAX} others` : '';
  return `${ids.slice(0, LISTED_MAX).join(', ')}${more}`;
}
