/**
 * A request that no rule is for, where the document of rules says `unmatched: deny`, so that a misspelt descriptor is not free. Plain
 * data: what it is called, and what doors say of it.
 */

/** Why such a request is denied. Figures count it under this name, so no rule of a document has it. */
export const UNMATCHED = 'unmatched';

/** What is done with such requests, if it is anything but to let them through. `shadow`: that is counted, and nobody is denied. */
export type Unmatched = 'deny' | 'shadow';

/** Clients retry after 429, and no retry helps here. */
export const UNMATCHED_STATUS = 403;
export const UNMATCHED_MESSAGE =
  'No rule is for this request, and the rules deny such requests. Waiting does not help: check its descriptors.';
