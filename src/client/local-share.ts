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
  /** The cost of all in the log. */
  used: number;
}

export type ShareAnswer =
  | { readonly allowed: true }
  | { readonly allowed: false; readonly retryAfterMillis: number };

export class LocalShares {
  readonly #byKey = new Map<string, Grants>();
  #grants = 0;

  /** @param cost 1 and more */
  allow(subject: string, cost: number, { limit, windowMillis }: LocalShare, nowMillis: number): ShareAnswer {
    const key = `${limit}/${windowMillis} ${subject}`;
    const known = this.#byKey.get(key);
    const grants: Grants = known ?? { log: [], windowMillis, used: 0 };
    this.#forget(grants, nowMillis);
    if (grants.used + cost > limit)
      return { allowed: false, retryAfterMillis: untilFits(grants, limit - cost, nowMillis) };
    if ((known === undefined && this.#byKey.size >= KEYS_MAX) || this.#grants >= GRANTS_MAX)
      this.#forgetIdle(nowMillis);
    const hasRoom = (known !== undefined || this.#byKey.size < KEYS_MAX) && this.#grants < GRANTS_MAX;
    if (!hasRoom) return { allowed: false, retryAfterMillis: windowMillis };
    grants.log.push({ atMillis: nowMillis, cost });
    grants.used += cost;
    this.#grants += 1;
    this.#byKey.set(key, grants);
    return { allowed: true };
  }

  get size(): number {
    return this.#byKey.size;
  }

  /** What is out of its window. */
  #forget(grants: Grants, nowMillis: number): void {
    const { log, windowMillis } = grants;
    const live = log.findIndex(({ atMillis }) => atMillis > nowMillis - windowMillis);
    const gone = live === 0 ? [] : log.splice(0, live === -1 ? log.length : live);
    for (const { cost } of gone) grants.used -= cost;
    this.#grants -= gone.length;
  }

  #forgetIdle(nowMillis: number): void {
    for (const [key, grants] of this.#byKey) {
      this.#forget(grants, nowMillis);
      if (grants.log.length === 0) this.#byKey.delete(key);
    }
  }
}

/** Until no more than `mostUsed` is in the log; the window if that is never so. */
function untilFits({ log, used, windowMillis }: Grants, mostUsed: number, nowMillis: number): number {
  let left = used;
  for (const { atMillis, cost } of log) {
    left -= cost;
    if (left <= mostUsed) return Math.max(1, Math.ceil(atMillis + windowMillis - nowMillis));
  }
  return windowMillis;
}
