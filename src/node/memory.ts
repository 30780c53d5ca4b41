/**
 * Reads how much memory this process may use and how much it uses. When memory is short, the node refuses new users.
 */
import { totalmem } from 'node:os';
import { getHeapStatistics } from 'node:v8';
import type { Memory } from '../partition/node-budget.ts';
import type { Logger } from 'pino';
import { HeapBound } from '../shedding/heap-bound.ts';

/** Fractions in use, 0 to 1. */
export interface MemoryInUse {
  readonly heapFraction: number;
  /** Fraction of the limit of the control group; 0 if there is none. */
  readonly memoryFraction: number;
}

/** Limit of the control group; 0 if there is none below the memory of the machine. */
function constrainedBytes(): number {
  const constrained = process.constrainedMemory();
  return constrained > 0 && constrained < totalmem() ? constrained : 0;
}

/** The limits of this process. */
export function memoryLimits(): Memory {
  return {
    heapBytesMax: getHeapStatistics().heap_size_limit,
    memoryBytes: constrainedBytes() || totalmem(),
  };
}

/** The memory in use. */
export function memoryInUse(): MemoryInUse {
  const { used_heap_size: usedBytes, heap_size_limit: limitBytes } = getHeapStatistics();
  const constrained = constrainedBytes();
  return {
    heapFraction: usedBytes / limitBytes,
    memoryFraction: constrained === 0 ? 0 : process.memoryUsage.rss() / constrained,
  };
}

/** What `HeapWatch` needs. */
export interface HeapWatchInit {
  readonly memoryInUse: () => MemoryInUse;
  readonly logger: Logger;
  /** Called when the state changes. */
  readonly changed: (isShort: boolean) => void;
}

/** Watches the memory in use by one process. */
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
