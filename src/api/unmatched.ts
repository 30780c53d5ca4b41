/**
 * Requests that no rule matches, if the rule document says `unmatched: deny`. Then a misspelt descriptor does not
 * make a request free. This file has the name and the texts of such denials.
 */

/** The reason of such a denial. Statistics count it under this name, so no rule of a document may have it. */
export const UNMATCHED = 'unmatched';

/** What happens to such requests, unless they are allowed. `shadow`: they are counted but not denied. */
export type Unmatched = 'deny' | 'shadow';

/** The HTTP status of such a denial. It is not 429, because clients retry after 429 and no retry helps here. */
export const UNMATCHED_STATUS = 403;
/** The message of such a denial. */
export const UNMATCHED_MESSAGE =
  'No rule matches this request, and the rules deny such requests. Waiting does not help: check its descriptors.';
