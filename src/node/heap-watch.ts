/** Watches the memory in use by this process. When it is short, the node refuses new users. */
import type { Logger } from 'pino';
import { HeapBound } from '../shedding/heap-bound.ts';
import type { MemoryInUse } from './memory.ts';

/** What `HeapWatch` needs. */
export interface HeapWatchInit {
  readonly memoryInUse: () => MemoryInUse;
  readonly logger: Logger;
  /** Called when the state changes. */
  readonly changed: (isShort: boolean) => void;
}

/** The watch of one process. */
export class HeapWatch {
  readonly #init: HeapWatchInit;
  readonly #bound = new HeapBound();

  constructor(init: HeapWatchInit) {
    this.#init = init;
  }

  /** Call about once a second. */
  check(): void {
    const { memoryInUse, logger, changed } = this.#init;
    const { heapFraction, memoryFraction } = memoryInUse();
    if (!this.#bound.check(Math.max(heapFraction, memoryFraction))) return;
    const { isShort } = this.#bound;
    logger.warn(
      { isShort, heapFraction: rounded(heapFraction), memoryFraction: rounded(memoryFraction) },
      isShort
        ? 'short of memory: requests of new users are refused until less is in use; give the process more with --max-old-space-size'
        : 'enough memory again: new users are accepted',
    );
    changed(isShort);
  }
}

function rounded(fraction: number): number {
  return Math.round(fraction * 100) / 100;
}
