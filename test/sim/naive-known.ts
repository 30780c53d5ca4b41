/** What the naive limiter knows of a key where it decides something. Data only. */
import type { Rule } from '../../src/api/rule.ts';
import type { Run } from './naive-meters.ts';
import type { Steps } from './naive-utc.ts';

/** What is known of a key by one meter of a rule. */
export interface KnownByMeter {
  readonly rule: Rule;
  /** The rule's window in group time. */
  readonly groupWindowMillis: number;
  /** All that was forgotten of the near epoch is out of the window then. */
  readonly evictedThroughMillis: number;
  /** What its meter remembers; undefined if nothing is known of it. */
  readonly runs: readonly Run[] | undefined;
  /** When it was granted something last, in group time, or later: see `naive-keys.ts`. */
  readonly madeMillis: number | undefined;
}

/** What a decision depends on. */
export interface Known extends KnownByMeter {
  /** When its window came into force. */
  readonly sinceMillis: number;
  /** How long a grant counts at most, for any key. */
  readonly reachMillis: number;
  /** The other windows of its rule, in the order of their ids, by all meters that they had. */
  readonly others: readonly (readonly KnownByMeter[])[];
  readonly nearEpochMillis: number;
  /** Of UTC, up to there. */
  readonly steps: Steps;
  /** By the meters that the rule had before: what they remember counts on top. */
  readonly retired: readonly KnownByMeter[];
}
