/**
 * How long an entry that this leader proposed took, from its first waiting request until it was applied. For metrics
 * and traces.
 */
import type { UserRequest } from '../api/user-request.ts';

/** The timing of one entry; times are in milliseconds. */
export interface EntryTiming {
  readonly term: number;
  readonly index: number;
  /** How many requests are in it, at least 1. */
  readonly requests: number;
  /** The longest time that one of them may have waited for a place in the log. */
  readonly queueMillis: number;
  /** From its proposal until this leader began to apply it. By then a quorum has it on disk. */
  readonly commitMillis: number;
  readonly applyMillis: number;
  /** One of its requests. */
  readonly sample: UserRequest;
}
