/**
 * What this node answers where nobody can decide, by the fail modes of the rules: `open` lets through, `local` is for a share of the
 * limit that this node grants alone. Nothing of it enters a log, so it may grant what the cluster would not. It says when
 * it begins, and when it ended.
 */
import type { DegradedAnswer } from '../api/question.ts';
import type { MatchedLimit } from './matched-limit.ts';

/** It has ended when nothing was decided so for as long. */
export const DEGRADED_QUIET_MILLIS = 10_000;

/** What this node says of its own shares. */
export interface LocalTake {
  /** Milliseconds until the costs would fit; 0: they were taken. */
  readonly waitMillis: number;
  /** Gives back what was taken: another limit denied the request. To be called once at most. */
  readonly giveBack: () => void;
}

export interface DegradedDecisionsInit {
  /** Takes the costs from what this node may grant alone under all of these limits, or under none. */
  readonly takeLocal: (limits: readonly MatchedLimit[]) => LocalTake;
  readonly monotonicMillis: () => number;
  /** This node decides so from now on; or no longer, and `decisions` times since it began. */
  readonly changed: (isDegraded: boolean, decisions: number) => void;
}

/** No rule asks for a share. */
const NOTHING_TAKEN: LocalTake = { waitMillis: 0, giveBack: () => undefined };

export class DegradedDecisions {
  readonly #init: DegradedDecisionsInit;
  /** Since it began; 0: it did not. */
  #decisions = 0;
  #lastMillis = 0;

  constructor(init: DegradedDecisionsInit) {
    this.#init = init;
  }

  /** @param limits that nobody could decide, of rules that are not `closed` */
  take(limits: readonly MatchedLimit[]): LocalTake {
    const local = limits.filter(({ rule }) => rule.failMode === 'local');
    return local.length === 0 ? NOTHING_TAKEN : this.#init.takeLocal(local);
  }

  /** @param rulesVersion of the rules that found the limits @param retryAfterMillis 0: it is let through */
  answer(limits: readonly MatchedLimit[], rulesVersion: number, retryAfterMillis: number): DegradedAnswer {
    this.#lastMillis = this.#init.monotonicMillis();
    this.#decisions += 1;
    if (this.#decisions === 1) this.#init.changed(true, 1);
    const ruleIds = [...new Set(limits.map(({ ruleId }) => ruleId))];
    return { kind: 'degraded', allowed: retryAfterMillis === 0, ruleIds, rulesVersion, retryAfterMillis };
  }

  tick(): void {
    if (this.#decisions === 0) return;
    if (this.#init.monotonicMillis() - this.#lastMillis < DEGRADED_QUIET_MILLIS) return;
    this.#init.changed(false, this.#decisions);
    this.#decisions = 0;
  }
}
