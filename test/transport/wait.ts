/** Helpers that wait for conditions without sleeping, also with fake timers. */

/** A limit, not an expected time: a condition that does not hold by then never will. */
const LIMIT_MILLIS = 240_000;
/** The real function, even if a test replaces the timers later. */
const { setTimeout: realSetTimeout } = globalThis;

/** Resolves when `condition` holds; rejects with its description if it does not hold in time. */
export async function until(
  what: string,
  condition: () => boolean,
  limitMillis: number = LIMIT_MILLIS,
): Promise<void> {
  const deadline = performance.now() + limitMillis;
  while (!condition()) {
    if (performance.now() > deadline) throw new Error(`not within ${limitMillis} ms: ${what}`);
    await new Promise((resolve) => realSetTimeout(resolve, 1));
  }
}
