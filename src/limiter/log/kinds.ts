/** The kinds of commands, as the first byte of a log entry says them. A new meaning needs a new number. */

/** Requests: see `batch.ts`. */
export const KIND_BATCH = 1;
export const KIND_RULES = 2;
export const KIND_SWEEP = 3;
/** What operators say of keys, and nothing else. */
export const KIND_CUSTOMERS = 4;
/** What happened before is not all known. See `LostHistory`. */
export const KIND_HISTORY_LOST = 5;
/** The group runs again after that. */
export const KIND_HISTORY_BEGINS = 6;
/** By how much UTC is ahead of group time. See `UtcSteps`. */
export const KIND_UTC = 7;
