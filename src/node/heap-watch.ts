/** Looks how much of the memory of this process is in use: short of it, the node remembers nobody new. */
import type { Logger } from 'pino';
import { HeapBound } from '../shedding/heap-bound.ts';
import type { MemoryInUse } from './memory.ts';

export interface HeapWatchInit {
  readonly memoryInUse: () => MemoryInUse;
  readonly logger: Logger;
  /** Told when that changes. */
  readonly changed: (isShort: boolean) => void;
}

export class HeapWatch {
  readonly #init: HeapWatchInit;
  readonly #bound = new HeapBound();

  constructor(init: HeapWatchInit) {
    this.#init = init;
  }

  /** To be called every second or so. */
  look(): void {
    const { memoryInUse, logger, changed } = this.#init;
    const { heapShare, memoryShare } = memoryInUse();
    if (!this.#bound.look(Math.max(heapShare, memoryShare))) return;
    const { isShort } = this.#bound;
    logger.warn(
      { isShort, heapShare: rounded(heapShare), memoryShare: rounded(memoryShare) },
      isShort
        ? 'short of memory: requests of new users are refused until less is in use; give the process more with --max-old-space-size'
        : 'memory is free again: nobody is refused for it any more',
    );
    changed(isShort);
  }
}

function rounded(share: number): number {
  return Math.round(share * 100) / 100;
}
