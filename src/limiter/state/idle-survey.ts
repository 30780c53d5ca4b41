/**
 * Looks through a state for what a sweep would forget, some of it at a time. It changes nothing and no decision depends on it, so it
 * takes no entry: a leader asks it whether a sweep is worth one.
 */
import type { LimiterState } from './limiter-state.ts';
import { idBehind } from './rows.ts';

export class IdleSurvey {
  /** What could be forgotten when it was looked at: keys, request ids and records. */
  dueCount = 0;
  /** Group time from which on the first of all that was looked at may be forgotten; `Infinity`: none ever. */
  firstMillis = Infinity;
  /** From which on the last one may be; `-Infinity`: none ever. */
  lastMillis = -Infinity;
  /** It has been through everything. What the state was granted meanwhile may be missing. */
  isDone = false;
  readonly #times: Iterator<number>;
  #nowMillis = 0;

  constructor(state: LimiterState) {
    this.#times = this.#timesOf(state);
  }

  /** Goes on at group time `nowMillis`. Returns the number of things that it looked at, `looksMax` at most. */
  look(looksMax: number, nowMillis: number): number {
    this.#nowMillis = nowMillis;
    for (let looks = 0; looks < looksMax; looks += 1) {
      const { done, value: fromMillis } = this.#times.next();
      if (done === true) {
        this.isDone = true;
        return looks;
      }
      if (fromMillis === Infinity) continue;
      if (fromMillis <= nowMillis) this.dueCount += 1;
      this.firstMillis = Math.min(this.firstMillis, fromMillis);
      this.lastMillis = Math.max(this.lastMillis, fromMillis);
    }
    return looksMax;
  }

  /** From when on each thing may be forgotten. The state may change between two of them. */
  *#timesOf(state: LimiterState): Generator<number, void> {
    const { memory, customers, stated } = state;
    let droppedMillis = 0;
    for (let n = 0; n < memory.size; n += 1) {
      // None is dropped before those that are older.
      droppedMillis = Math.max(droppedMillis, memory.expiredFromMillis(idBehind(memory.first, n)));
      yield droppedMillis;
      // Of those that have not expired the first one and the last one are enough.
      if (droppedMillis > this.#nowMillis) n = Math.max(n, memory.size - 2);
    }
    for (let slot = 0; slot < customers.size; slot += 1) yield customers.endedFromMillis(slot);
    for (let place = 0; place < state.keyTables.length; place += 1) {
      const keys = state.keyTables[place]!;
      for (let slot = 0; slot < keys.size; slot += 1) {
        const rule = customers.ruleToForget(keys, slot);
        yield keys.idleFromMillis(slot, rule, stated.windowToForget(keys, slot));
      }
    }
  }
}
