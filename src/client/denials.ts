/**
 * Remembers denials, so that a request which would be denied again is answered without asking the cluster. A count
 * never leaves its window early, so a denial holds for its `retryAfterMillis`, unless an operator changes something: a
 * new version of the rules clears the memory, and a refund or a reset takes effect after `deniedMillisMax` at the
 * latest.
 */
import type { PermitAnswer, PermitDenied } from './permit.ts';
import { RecentMap } from './recent-map.ts';

/**
 * Limit, in milliseconds, for requests whose limits are found by rules: one of several limits, or the tier of the
 * customer, may change.
 */
const DESCRIBED_MILLIS_MAX = 1_000;

/** A request that was denied. */
export interface Denied {
  readonly subject: string;
  readonly cost: number;
  /** True: rules find the limits of the request from its descriptors. */
  readonly isDescribed: boolean;
  /**
   * When the request was sent. The wait is counted from here, before the decision, so that the memory ends early rather
   * than late.
   */
  readonly sentMillis: number;
}

interface Remembered {
  readonly denied: PermitDenied;
  readonly cost: number;
  readonly atMillis: number;
  readonly untilMillis: number;
}

/** The client options that bound this memory. */
export interface DenialsInit {
  readonly deniedMax: number;
  readonly deniedMillisMax: number;
}

/** Denials by subject. See `subjectOf` for what a subject is. */
export class Denials {
  readonly #bySubject: RecentMap<string, Remembered>;
  readonly #millisMax: number;
  /** The newest version of the rules seen in an answer. */
  #rulesVersion = 0;

  constructor({ deniedMax, deniedMillisMax }: DenialsInit) {
    this.#bySubject = new RecentMap(deniedMax);
    this.#millisMax = deniedMillisMax;
  }

  /** Returns a denial of `subject` that still holds for this cost: one of the same cost or less. */
  find(subject: string, cost: number, nowMillis: number): PermitDenied | undefined {
    const found = this.#bySubject.get(subject);
    if (found === undefined || cost < found.cost) return undefined;
    if (nowMillis >= found.untilMillis) {
      this.#bySubject.delete(subject);
      return undefined;
    }
    const { denied, atMillis } = found;
    const passedMillis = Math.floor(nowMillis - atMillis);
    const { retryAfterMillis, restoredMillis } = denied;
    return {
      ...denied,
      ...(restoredMillis !== undefined && { restoredMillis: Math.max(1, restoredMillis - passedMillis) }),
      isCached: true,
      ...(retryAfterMillis !== undefined && {
        retryAfterMillis: Math.max(1, retryAfterMillis - passedMillis),
      }),
      resetMillis: Math.max(1, denied.resetMillis - passedMillis),
    };
  }

  /**
   * Must be called with every answer, because an answer shows the current version of the rules.
   *
   * @param asked the request, or undefined if its answer must not be remembered
   */
  note(answer: PermitAnswer, asked: Denied | undefined): void {
    if (!('rulesVersion' in answer)) return;
    if (answer.rulesVersion > this.#rulesVersion) {
      this.#rulesVersion = answer.rulesVersion;
      this.#bySubject.clear();
    }
    if (answer.kind !== 'denied' || asked === undefined || answer.rulesVersion < this.#rulesVersion) return;
    const { subject, cost, isDescribed, sentMillis } = asked;
    const millisMax = isDescribed ? Math.min(DESCRIBED_MILLIS_MAX, this.#millisMax) : this.#millisMax;
    const untilMillis = sentMillis + Math.min(answer.retryAfterMillis ?? millisMax, millisMax);
    this.#bySubject.set(subject, { denied: answer, cost, atMillis: sentMillis, untilMillis });
  }
}
