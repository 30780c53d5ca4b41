/**
 * Whether a process is so short of memory that it should remember nobody new. It is told what part of its heap is in use; what is
 * garbage counts until it is collected, so one look proves little. It reads nothing itself.
 */

/** Above this in all of the last looks: most of it is no garbage. */
const SHORT_SHARE = 0.85;
const LOOKS = 3;
/** Above this there is no time for another look. */
const FULL_SHARE = 0.95;
/** It ends below this. */
const ENOUGH_SHARE = 0.75;

export class HeapBound {
  #looksAbove = 0;
  #isShort = false;

  get isShort(): boolean {
    return this.#isShort;
  }

  /** @param usedShare of what there may be, from 0. Returns whether the answer has changed */
  look(usedShare: number): boolean {
    const before = this.#isShort;
    this.#looksAbove = usedShare > SHORT_SHARE ? this.#looksAbove + 1 : 0;
    if (usedShare > FULL_SHARE || this.#looksAbove >= LOOKS) this.#isShort = true;
    else if (usedShare < ENOUGH_SHARE) this.#isShort = false;
    return this.#isShort !== before;
  }
}
