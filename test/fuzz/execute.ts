/**
 * Runs one parser on one input and checks the result, the time and the memory. A run that takes too much is repeated
 * first, because other work or a garbage collection may have caused it.
 */
import { performance } from 'node:perf_hooks';
import { getHeapStatistics } from 'node:v8';
import type { Judge, Outcome, Target } from './target.ts';

/** The maximum processor time for one input. */
export const CPU_MILLIS_MAX = 50;
/** Memory that any input may allocate, in addition to `bytesPerByteMax`. */
export const ALLOCATED_BYTES_FREE = 1 << 20;
/** Repetitions, of which the cheapest counts. */
const AGAIN = 4;

/** A parser broke its promise for this input. */
export class Finding extends Error {
  readonly code = 'FINDING';
  readonly target: string;
  readonly input: Buffer;

  constructor(target: Target, input: Buffer, what: string, cause?: unknown) {
    super(`${target.name}: ${what}`, { cause });
    this.name = 'Finding';
    this.target = target.name;
    this.input = input;
  }
}

/**
 * Runs one input.
 *
 * @throws Finding if the parser throws a foreign error, takes too much time or memory, or returns a wrong result
 */
export async function execute(target: Target, input: Buffer): Promise<Outcome> {
  const allocatedMax = ALLOCATED_BYTES_FREE + target.bytesPerByteMax * input.length;
  const before = allocated();
  const startedAt = performance.now();
  const outcome = await ran(target, input);
  const tookMillis = performance.now() - startedAt;
  const bytes = allocated() - before;
  if (tookMillis > CPU_MILLIS_MAX || bytes > allocatedMax) await checkAgain(target, input, allocatedMax);
  return typeof outcome === 'string' ? outcome : found(target, input, outcome);
}

async function ran(target: Target, input: Buffer): Promise<Outcome | Judge> {
  return found(target, input, () => target.run(input));
}

/** Returns the result of `of`, without waiting if it is no promise. */
async function found<T>(target: Target, input: Buffer, of: () => T | Promise<T>): Promise<T> {
  try {
    const said = of();
    return said instanceof Promise ? await said : said;
  } catch (error) {
    throw new Finding(
      target,
      input,
      error instanceof Error ? `${error.name}: ${error.message}` : 'threw',
      error,
    );
  }
}

async function checkAgain(target: Target, input: Buffer, allocatedMax: number): Promise<void> {
  let leastMillis = Infinity;
  let leastBytes = Infinity;
  for (let i = 0; i < AGAIN; i += 1) {
    const cpu = process.cpuUsage();
    const before = allocated();
    await ran(target, input);
    leastBytes = Math.min(leastBytes, allocated() - before);
    const { user, system } = process.cpuUsage(cpu);
    leastMillis = Math.min(leastMillis, (user + system) / 1_000);
  }
  const { length } = input;
  if (leastMillis > CPU_MILLIS_MAX) {
    throw new Finding(
      target,
      input,
      `${length} bytes take ${Math.round(leastMillis)} ms, more than ${CPU_MILLIS_MAX}`,
    );
  }
  if (leastBytes > allocatedMax) {
    throw new Finding(
      target,
      input,
      `${length} bytes allocate ${leastBytes} bytes, more than ${allocatedMax}`,
    );
  }
}

/** Less than before where garbage was collected meanwhile. */
function allocated(): number {
  const { used_heap_size: used, external_memory: external } = getHeapStatistics();
  return used + external;
}
