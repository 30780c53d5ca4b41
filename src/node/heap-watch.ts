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
  look(): void {
    const { memoryInUse, logger, changed } = this.#init;
    const { heapShare, memoryShare } = memoryInUse();
    if (!this.#bound.look(Math.max(heapShare, memoryShare))) return;
    const { isShort } = this.#bound;
    logger.warn(
      { isShort, heapShare: rounded(heapShare), memoryShare: rounded(memoryShare) },
      isShort
        ? 'short of memory: requests of new users are refused until less is in use; give the process more with --max-old-space-size'
        : 'enough memory again: new users are accepted',
    );
    changed(isShort);
  }
}

function rounded(share: number): number {
  return Math.round(share * 100) / 100;
}
