/**
 * Denials that are still so: nobody needs to be asked again before there is room. What was granted never disappears before its time,
 * so a denial holds until then, unless an operator changes something: new rules drop all of them, and a refund or a reset is
 * noticed after the longest time to remember one.
 */
import type { PermitAnswer, PermitDenied } from './permit.ts';
import { RecentMap } from './recent-map.ts';

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
    return {
      ...denied,
      isCached: true,
      retryAfterMillis: Math.max(1, denied.retryAfterMillis - passedMillis),
      resetMillis: Math.max(1, denied.resetMillis - passedMillis),
    };
  }

  /**
   * To be told of every answer.
   *
   * @param sentMillis when it was asked for: the time to wait is counted from before the decision, so that it ends early rather than late
   */
  note(
    answer: PermitAnswer,
    { subject, cost, sentMillis }: { subject: string; cost: number; sentMillis: number },
  ): void {
    if (!('rulesVersion' in answer)) return;
    if (answer.rulesVersion > this.#rulesVersion) {
      this.#rulesVersion = answer.rulesVersion;
      this.#bySubject.clear();
    }
    if (answer.kind !== 'denied' || answer.rulesVersion < this.#rulesVersion) return;
    const untilMillis = sentMillis + Math.min(answer.retryAfterMillis, this.#millisMax);
    this.#bySubject.set(subject, { denied: answer, cost, atMillis: sentMillis, untilMillis });
  }
}
