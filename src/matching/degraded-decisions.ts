/**
 * Decides by the fail modes of the rules when no partition can decide: `open` lets the request through, `local`
 * grants it out of this node's fraction of the limit. Nothing of this enters a log, so the node may grant more than
 * the cluster would. The node reports when such decisions begin and when they have ended.
 */
import type { MonotonicClock } from '../api/clocks.ts';
import type { DegradedAnswer } from '../api/question.ts';
import type { MatchedLimit } from './matched-limit.ts';

/** Degraded operation has ended when no such decision was made for this long. */
export const DEGRADED_QUIET_MILLIS = 10_000;

/** The answer of this node's own fraction of some limits. */
export interface LocalTake {
  /** Milliseconds until the costs would fit. 0: the costs were taken. */
  readonly waitMillis: number;
  /** Gives the costs back because another limit denied the request. Call it at most once. */
  readonly giveBack: () => void;
}

/** What `DegradedDecisions` needs. */
export interface DegradedDecisionsInit extends MonotonicClock {
  /** Takes the costs from this node's fractions of all of these limits, or of none. */
  readonly takeLocal: (limits: readonly MatchedLimit[]) => LocalTake;
  /**
   * Called when degraded operation begins (`true`, 1) and when it has ended (`false`, number of decisions made).
   */
  readonly changed: (isDegraded: boolean, decisions: number) => void;
}

/** For limits without fail mode `local`. */
const NOTHING_TAKEN: LocalTake = { waitMillis: 0, giveBack: () => undefined };

/** Makes and counts the decisions of one node by fail mode. */
export class DegradedDecisions {
  readonly #init: DegradedDecisionsInit;
  /** Decisions since degraded operation began; 0 outside of it. */
  #decisions = 0;
  #lastMillis = 0;

  constructor(init: DegradedDecisionsInit) {
    this.#init = init;
  }

  /**
   * Takes the costs of the limits with fail mode `local` from this node's fraction.
   *
   * @param limits that no partition could decide, of rules that are not `closed`
   */
  take(limits: readonly MatchedLimit[]): LocalTake {
    const local = limits.filter(({ rule }) => rule.failMode === 'local');
    return local.length === 0 ? NOTHING_TAKEN : this.#init.takeLocal(local);
  }

  /**
   * The answer by fail mode. Counts it as one degraded decision.
   *
   * @param rulesVersion of the rules that found the limits
   * @param retryAfterMillis 0: the request is let through
   */
  answer(limits: readonly MatchedLimit[], rulesVersion: number, retryAfterMillis: number): DegradedAnswer {
    this.#lastMillis = this.#init.monotonicMillis();
    this.#decisions += 1;
    if (this.#decisions === 1) this.#init.changed(true, 1);
    const ruleIds = [...new Set(limits.map(({ ruleId }) => ruleId))];
    return { kind: 'degraded', allowed: retryAfterMillis === 0, ruleIds, rulesVersion, retryAfterMillis };
  }

  /** Call regularly: reports the end of degraded operation. */
  tick(): void {
    if (this.#decisions === 0) return;
    if (this.#init.monotonicMillis() - this.#lastMillis < DEGRADED_QUIET_MILLIS) return;
    this.#init.changed(false, this.#decisions);
    this.#decisions = 0;
  }
}
