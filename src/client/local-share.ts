/**
 * What this process may grant a key by itself while nobody can decide: a sliding log in memory. It begins anew with the process, and
 * knows nothing of other processes. Where it has no room left it denies.
 */
import type { LocalShare } from './options.ts';

const KEYS_MAX = 4_096;
/** Of all keys together. */
const GRANTS_MAX = 262_144;

interface Grants {
  /** Oldest first. */
  readonly log: { readonly atMillis: number; readonly cost: number }[];
  readonly windowMillis: number;
}

export type ShareAnswer =
  | { readonly allowed: true }
  | { readonly allowed: false; readonly retryAfterMillis: number };

export class LocalShares {
  /** Who was granted longest ago comes first. */
  readonly #byKey = new Map<string, Grants>();
  #grants = 0;

  /** @param cost 1 and more */
  allow(subject: string, cost: number, { limit, windowMillis }: LocalShare, nowMillis: number): ShareAnswer {
    const key = `${limit}/${windowMillis} ${subject}`;
    const log: Grants['log'] = this.#byKey.get(key)?.log ?? [];
    this.#forgetIn(log, windowMillis, nowMillis);
    const used = log.reduce((sum, each) => sum + each.cost, 0);
    if (used + cost > limit)
      return {
        allowed: false,
        retryAfterMillis: untilFits({ log, used, cost, limit }, windowMillis, nowMillis),
      };
    if (!this.#byKey.has(key) && this.#byKey.size >= KEYS_MAX) this.#forgetIdle(nowMillis);
    const hasRoom = (this.#byKey.has(key) || this.#byKey.size < KEYS_MAX) && this.#grants < GRANTS_MAX;
    if (!hasRoom) return { allowed: false, retryAfterMillis: windowMillis };
    log.push({ atMillis: nowMillis, cost });
    this.#grants += 1;
    this.#byKey.delete(key);
    this.#byKey.set(key, { log, windowMillis });
    return { allowed: true };
  }

  get size(): number {
    return this.#byKey.size;
  }

  #forgetIn(log: Grants['log'], windowMillis: number, nowMillis: number): void {
    const live = log.findIndex(({ atMillis }) => atMillis > nowMillis - windowMillis);
    this.#grants -= log.splice(0, live === -1 ? log.length : live).length;
  }

  #forgetIdle(nowMillis: number): void {
    for (const [key, { log, windowMillis }] of this.#byKey) {
      this.#forgetIn(log, windowMillis, nowMillis);
      if (log.length === 0) this.#byKey.delete(key);
    }
  }
}

/** Until so much of the log is out of its window that the cost fits; the window if it never does. */
function untilFits(
  { log, used, cost, limit }: { log: Grants['log']; used: number; cost: number; limit: number },
  windowMillis: number,
  nowMillis: number,
): number {
  let left = used;
  for (const { atMillis, cost: taken } of log) {
    left -= taken;
    if (left + cost <= limit) return Math.max(1, Math.ceil(atMillis + windowMillis - nowMillis));
  }
  return windowMillis;
}
