/** Helpers that wait for conditions without sleeping, also with fake timers. */

/** Not how long it should take: after this it never will. */
const LIMIT_MILLIS = 240_000;
/** The real function, whatever a test does with the timers later. */
const { setTimeout: realSetTimeout } = globalThis;

/** Resolves when `condition` holds; rejects, saying what was waited for, when it does not come true in time. */
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
