/** What memory there is for this process, and how much of it is in use. It only asks the engine and the system. */
import { totalmem } from 'node:os';
import { getHeapStatistics } from 'node:v8';
import type { Memory } from '../partition/node-budget.ts';

/** Parts of what there may be, from 0 to 1. */
export interface MemoryInUse {
  readonly heapShare: number;
  /** Of the limit of the control group; 0 where there is none. */
  readonly memoryShare: number;
}

/** 0: no control group sets a limit below what the machine has. */
function constrainedBytes(): number {
  const constrained = process.constrainedMemory();
  return constrained > 0 && constrained < totalmem() ? constrained : 0;
}

export function memoryLimits(): Memory {
  return {
    heapBytesMax: getHeapStatistics().heap_size_limit,
    memoryBytes: constrainedBytes() || totalmem(),
  };
}

export function memoryInUse(): MemoryInUse {
  const { used_heap_size: usedBytes, heap_size_limit: limitBytes } = getHeapStatistics();
  const constrained = constrainedBytes();
  return {
    heapShare: usedBytes / limitBytes,
    memoryShare: constrained === 0 ? 0 : process.memoryUsage.rss() / constrained,
  };
}
