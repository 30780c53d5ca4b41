/**
 * Denials that are still so: nobody needs to be asked again before there is room. What was granted never disappears before its time,
 * so a denial holds until then, unless an operator changes something: new rules drop all of them, and a refund or a reset is
 * noticed after the longest time to remember one. It never outlives the time to wait that it came with.
 */
import type { PermitAnswer, PermitDenied } from './permit.ts';
import { RecentMap } from './recent-map.ts';

/** Of a request that rules find limits for: any of several may change, and what its customer may do. */
const DESCRIBED_MILLIS_MAX = 1_000;

/** What was asked. */
export interface Denied {
  readonly subject: string;
  readonly cost: number;
  /** Its limits were found by rules. */
  readonly isDescribed: boolean;
  /** When it was asked for: the time to wait is counted from before the decision, so that it ends early rather than late. */
  readonly sentMillis: number;
}

interface Remembered {
  readonly denied: PermitDenied;
  readonly cost: number;
  readonly atMillis: number;
  readonly untilMillis: number;
}

export interface DenialsInit {
  readonly deniedMax: number;
  readonly deniedMillisMax: number;
}

export class Denials {
  readonly #bySubject: RecentMap<string, Remembered>;
  readonly #millisMax: number;
  /** The newest that was seen. */
  #rulesVersion = 0;

  constructor({ deniedMax, deniedMillisMax }: DenialsInit) {
    this.#bySubject = new RecentMap(deniedMax);
    this.#millisMax = deniedMillisMax;
  }

  /** What `subject` was denied at this cost or less. */
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

  /** To be told of every answer. @param asked undefined: it is not remembered, and only says by which rules it was made */
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
