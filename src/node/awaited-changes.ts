/** Changes that group 0 has made, and that are told to be done when those know of them who are to, or after a few seconds. */
import type { ChangeDone, ChangeMade } from '../api/cluster-change.ts';

export interface AwaitedChange {
  readonly made: ChangeMade;
  /** Who does not know of it yet. */
  readonly pending: () => readonly number[];
  /** Whether any of these may yet hear of it; absent: all of them may. */
  readonly mayHear?: (pending: readonly number[]) => boolean;
  readonly done: ChangeDone;
}

/** Who does not say for so long that they know is told to be pending. */
const PATIENCE_TICKS = 500;
/** What group 0 lets wait, too. */
const WAITING_MAX = 64;

export class AwaitedChanges {
  #waiting: (AwaitedChange & { readonly untilTick: number })[] = [];
  #ticks = 0;

  /** Another change may not be asked for. */
  get isFull(): boolean {
    return this.#waiting.length >= WAITING_MAX;
  }

  add(change: AwaitedChange): void {
    this.#waiting.push({ ...change, untilTick: this.#ticks + PATIENCE_TICKS });
  }

  tick(): void {
    this.#ticks += 1;
    if (this.#waiting.length === 0) return;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const each of waiting) {
      const pending = each.pending();
      const isOver = pending.length === 0 || this.#ticks >= each.untilTick;
      if (isOver || each.mayHear?.(pending) === false) each.done({ ...each.made, pending });
      else this.#waiting.push(each);
    }
  }
}
