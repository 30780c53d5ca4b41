/**
 * Searches a state for items that a sweep would forget, a few at a time. It changes nothing and no decision depends on
 * it, so it needs no log entry: a leader uses it to find out whether a sweep is worth an entry.
 */
import type { LimiterState } from './limiter-state.ts';
import { idBehind } from './rows.ts';

/** One pass over a state. */
export class IdleSurvey {
  /** How many of the visited items (keys, request ids and records) could be forgotten when they were visited. */
  dueCount = 0;
  /** The earliest group time at which one of the visited items may be forgotten; `Infinity` if none ever may. */
  firstMillis = Infinity;
  /** The latest such group time; `-Infinity` if there is none. */
  lastMillis = -Infinity;
  /** Everything was visited. Grants made meanwhile may be missing. */
  isDone = false;
  readonly #times: Iterator<number>;
  #nowMillis = 0;

  constructor(state: LimiterState) {
    this.#times = this.#timesOf(state);
  }

  /** Continues at group time `nowMillis`. Returns how many items it visited, at most `visitsMax`. */
  check(visitsMax: number, nowMillis: number): number {
    this.#nowMillis = nowMillis;
    for (let visits = 0; visits < visitsMax; visits += 1) {
      const { done, value: fromMillis } = this.#times.next();
      if (done === true) {
        this.isDone = true;
        return visits;
      }
      if (fromMillis === Infinity) continue;
      if (fromMillis <= nowMillis) this.dueCount += 1;
      this.firstMillis = Math.min(this.firstMillis, fromMillis);
      this.lastMillis = Math.max(this.lastMillis, fromMillis);
    }
    return visitsMax;
  }

  /** The time from which on each item may be forgotten. The state may change between two of them. */
  *#timesOf(state: LimiterState): Generator<number, void> {
    const { memory, customers, stated } = state;
    let droppedMillis = 0;
    for (let n = 0; n < memory.size; n += 1) {
      // No grant is dropped before older ones.
      droppedMillis = Math.max(droppedMillis, memory.expiredFromMillis(idBehind(memory.first, n)));
      yield droppedMillis;
      // This grant has not expired: skip to the newest one. The grants between them change nothing.
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
