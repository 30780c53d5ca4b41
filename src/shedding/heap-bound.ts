/**
 * Decides when a process is so short of memory that it should not remember new keys. Garbage counts as used until it
 * is collected, so a single measurement proves little. It measures nothing itself.
 */

/** If all recent measurements are above this fraction, most of the memory is not garbage. */
const SHORT_FRACTION = 0.85;
const CHECKS = 3;
/** Above this fraction there is no time for another measurement. */
const FULL_FRACTION = 0.95;
/** The shortage ends below this fraction. */
const ENOUGH_FRACTION = 0.75;

/** Whether memory is short. */
export class HeapBound {
  #checksAbove = 0;
  #isShort = false;

  /** True while memory is short. */
  get isShort(): boolean {
    return this.#isShort;
  }

  /**
   * Adds a measurement. Returns true if `isShort` has changed. @param usedFraction the used fraction of the heap limit,
   * from 0
   */
  check(usedFraction: number): boolean {
    const before = this.#isShort;
    this.#checksAbove = usedFraction > SHORT_FRACTION ? this.#checksAbove + 1 : 0;
    if (usedFraction > FULL_FRACTION || this.#checksAbove >= CHECKS) this.#isShort = true;
    else if (usedFraction < ENOUGH_FRACTION) this.#isShort = false;
    return this.#isShort !== before;
  }
}
