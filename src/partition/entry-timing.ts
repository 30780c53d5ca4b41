/** How long an entry of a leader's own took, from the first request in it to the last effect. Decides nothing. */
import type { UserRequest } from '../api/user-request.ts';

export interface EntryTiming {
  readonly term: number;
  readonly index: number;
  /** How many requests are in it, at least 1. */
  readonly requests: number;
  /** So long one of them may have waited for a place in the log, and no longer. */
  readonly queueMillis: number;
  /** From its proposal until this leader began to apply it: a quorum has it on disk by then. */
  readonly commitMillis: number;
  readonly applyMillis: number;
  /** One of them. */
  readonly sample: UserRequest;
}
