/** The kinds of commands, as the first byte of a log entry says them. A new meaning needs a new number. */

export const KIND_ALLOW = 5;
export const KIND_SWEEP = 7;
/** As `KIND_ALLOW`, and some of the rows are refunds. */
export const KIND_REFUNDS = 8;
export const KIND_RULES = 9;
/** As `KIND_REFUNDS`, and some requests are under several limits, or were matched by rules. */
export const KIND_JOINT = 10;
