/** Reads how much memory this process may use, and how much it uses. */
import { totalmem } from 'node:os';
import { getHeapStatistics } from 'node:v8';
import type { Memory } from '../partition/node-budget.ts';

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
