/** The kinds of commands, as the first byte of a log entry says them. A new meaning needs a new number. */

export const KIND_ALLOW = 5;
export const KIND_SWEEP = 7;
export const KIND_RULES = 8;
