/**
 * Changes that group 0 has made and that are not acknowledged yet: a change is acknowledged when all that must know
 * it do, or after a few seconds.
 */
import type { ChangeDone, ChangeMade } from '../api/cluster-change.ts';

/** A change that waits to be acknowledged. */
export interface AwaitedChange {
  readonly made: ChangeMade;
  /** Nodes or partitions that do not have the change yet. */
  readonly pending: () => readonly number[];
  /** Whether any of these can still get it; absent: all can. */
  readonly mayHear?: (pending: readonly number[]) => boolean;
  readonly done: ChangeDone;
}

/** After this time the change is acknowledged, with those that are still pending. */
const PATIENCE_TICKS = 500;
/** The maximum number of changes that wait; group 0 has the same bound. */
const WAITING_MAX = 64;

/** The changes that wait on one node. */
export class AwaitedChanges {
  #waiting: (AwaitedChange & { readonly untilTick: number })[] = [];
  #ticks = 0;

  /** No further change may be added. */
  get isFull(): boolean {
    return this.#waiting.length >= WAITING_MAX;
  }

  /** Adds a change. */
  add(change: AwaitedChange): void {
    this.#waiting.push({ ...change, untilTick: this.#ticks + PATIENCE_TICKS });
  }

  /** Call once per tick. */
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
