/** The kinds of commands: the first byte of a log entry. A new meaning needs a new number. */

/** Requests: see `batch.ts`. */
export const KIND_BATCH = 1;
/** A rule table: see `command.ts`. */
export const KIND_RULES = 2;
/** A sweep; the kind byte is the whole entry. */
export const KIND_SWEEP = 3;
/** Customer commands of operators: see `customer-entry.ts`. */
export const KIND_CUSTOMERS = 4;
/** Part of the history is missing. See `LostHistory`. */
export const KIND_HISTORY_LOST = 5;
/** The group runs again after history was lost. */
export const KIND_HISTORY_BEGINS = 6;
/** How far UTC is ahead of group time. See `UtcSteps`. */
export const KIND_UTC = 7;
