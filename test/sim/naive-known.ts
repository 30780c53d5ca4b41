/** The knowledge of the naive limiter about a key when it decides. Data only. */
import type { Rule } from '../../src/api/rule.ts';
import type { Run } from './naive-meters.ts';
import type { Steps } from './naive-utc.ts';

/** The knowledge of one meter of a rule about a key. */
export interface KnownByMeter {
  readonly rule: Rule;
  /** The rule's window in group time. */
  readonly groupWindowMillis: number;
  /** By this time everything that was forgotten of the near epoch is out of the window. */
  readonly evictedThroughMillis: number;
  /** The memory of its meter; undefined if it does not know the key. */
  readonly runs: readonly Run[] | undefined;
  /** Group time of its last grant, or later: see `naive-keys.ts`. */
  readonly madeMillis: number | undefined;
}

/** All that a decision depends on. */
export interface Known extends KnownByMeter {
  /** When its window came into force. */
  readonly sinceMillis: number;
  /** How long a grant counts at most, for any key. */
  readonly reachMillis: number;
  /** The other windows of its rule, in the order of their ids, each with all meters that it had. */
  readonly others: readonly (readonly KnownByMeter[])[];
  readonly nearEpochMillis: number;
  /** The steps of UTC up to there. */
  readonly steps: Steps;
  /** The meters that the rule had before. The grants that they remember count in addition. */
  readonly retired: readonly KnownByMeter[];
}
