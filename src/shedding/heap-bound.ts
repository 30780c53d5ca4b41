/**
 * Decides when a process is so short of memory that it should not remember new keys. Garbage counts as used until it
 * is collected, so a single measurement proves little. It measures nothing itself.
 */

/** If all recent measurements are above this fraction, most of the memory is not garbage. */
const SHORT_SHARE = 0.85;
const LOOKS = 3;
/** Above this fraction there is no time for another measurement. */
const FULL_SHARE = 0.95;
/** The shortage ends below this fraction. */
const ENOUGH_SHARE = 0.75;

/** Whether memory is short. */
export class HeapBound {
  #looksAbove = 0;
  #isShort = false;

  /** True while memory is short. */
  get isShort(): boolean {
    return this.#isShort;
  }

  /**
   * Adds a measurement. Returns true if `isShort` has changed. @param usedShare the used fraction of the heap limit,
   * from 0
   */
  look(usedShare: number): boolean {
    const before = this.#isShort;
    this.#looksAbove = usedShare > SHORT_SHARE ? this.#looksAbove + 1 : 0;
    if (usedShare > FULL_SHARE || this.#looksAbove >= LOOKS) this.#isShort = true;
    else if (usedShare < ENOUGH_SHARE) this.#isShort = false;
    return this.#isShort !== before;
  }
}
