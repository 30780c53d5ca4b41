/**
 * What an operator's changes of keys (block, unblock, reset) mean for requests, in real time. An unanswered change may
 * take effect at any later moment. Judges nothing.
 */
import type { Ask, KeyAction, KeyChange } from '../joint-history.ts';

export class KeyChanges {
  readonly #byKey = new Map<string, KeyChange[]>();

  constructor(changes: readonly KeyChange[]) {
    for (const change of changes) {
      if (change.class === 'fail') continue;
      const own = this.#byKey.get(change.key);
      if (own === undefined) this.#byKey.set(change.key, [change]);
      else own.push(change);
    }
  }

  /** From this moment on a reset may have cleared what was charged to the key at `chargedFromNanos` or later. */
  mayBeResetFrom(key: string, chargedFromNanos: number): number {
    const resets = this.#of(key, 'reset').filter((reset) => endOf(reset) >= chargedFromNanos);
    return Math.min(Infinity, ...resets.map(({ invokeNanos }) => invokeNanos));
  }

  /** From this moment on a reset has certainly cleared what was charged to the key at `chargedToNanos` or earlier. */
  isResetFrom(key: string, chargedToNanos: number): number {
    const resets = this.#of(key, 'reset').filter(
      (reset) => reset.class === 'ok' && reset.invokeNanos >= chargedToNanos,
    );
    return Math.min(Infinity, ...resets.map(({ completeNanos }) => completeNanos));
  }

  /**
   * An operator may have blocked one of its keys, and no answer shows that it was unblocked before the request was
   * made.
   */
  mayBeBlocked({ limits, invokeNanos, completeNanos }: Ask): boolean {
    return limits.some(({ key }) =>
      this.#of(key, 'block').some(
        (block) =>
          block.invokeNanos <= completeNanos &&
          !this.#of(key, 'unblock').some(
            (unblock) =>
              unblock.class === 'ok' &&
              unblock.invokeNanos > endOf(block) &&
              unblock.completeNanos < invokeNanos,
          ),
      ),
    );
  }

  /**
   * The key was certainly blocked: the block was answered before the request was made at `fromNanos`, and no operator
   * may have unblocked the key by `toNanos`.
   */
  isBlocked(key: string, fromNanos: number, toNanos: number): boolean {
    return this.#of(key, 'block').some(
      (block) =>
        block.class === 'ok' &&
        block.completeNanos < fromNanos &&
        !this.#of(key, 'unblock').some(
          (unblock) => unblock.invokeNanos <= toNanos && endOf(unblock) >= block.invokeNanos,
        ),
    );
  }

  #of(key: string, action: KeyAction): readonly KeyChange[] {
    return this.#byKey.get(key)?.filter((change) => change.action === action) ?? [];
  }
}

function endOf({ class: outcome, completeNanos }: KeyChange): number {
  return outcome === 'ok' ? completeNanos : Infinity;
}
