/**
 * The limits that one process enforces by itself while no quorum can decide: a sliding log per key, in memory. Nodes
 * use it for rules with the fail mode `local`, clients for their own fail mode of that name. It starts empty with the
 * process and knows nothing of other processes.
 */

/** A cost that is wanted for one key under one limit. */
export interface WantedLimit {
  /** The key, plus anything else that distinguishes this limit from others with the same limit and window. */
  readonly name: string;
  readonly limit: number;
  readonly windowMillis: number;
  /** 1 or more. */
  readonly cost: number;
}

/** The number of names with live grants that one process remembers. */
export const LOCAL_KEYS_MAX = 16_384;
/** A key remembers about this many times (plus two), however much it was granted. */
const GRANULES = 16;

interface Granule {
  readonly beginMillis: number;
  /** All grants of the granule count as granted at this time, the time of the last one. */
  atMillis: number;
  cost: number;
}

interface Grants {
  /** Oldest first. */
  readonly log: Granule[];
  readonly windowMillis: number;
  /** The total cost in the log. */
  used: number;
}

/**
 * **Guarantee.** A name is granted at most `limit` in any rolling window, not counting what is given back. A grant
 * counts up to one 16th of the window longer than necessary. While `LOCAL_KEYS_MAX` names have live grants, a name
 * without grants is denied.
 */
export class LocalLimits {
  readonly #byName = new Map<string, Grants>();
  /** No name becomes idle before this time. */
  #fullUntilMillis = 0;

  /** Number of names that are remembered. */
  get size(): number {
    return this.#byName.size;
  }

  /**
   * Takes all of these costs, or none.
   *
   * @param nowMillis a monotonic clock in milliseconds, with fractions
   * @returns milliseconds until all of them fit if nothing else is taken; 0 if they were taken
   */
  take(wanted: readonly WantedLimit[], nowMillis: number): number {
    // A grant counts from the end of its millisecond until the start of another: never shorter than it must.
    const now = Math.floor(nowMillis);
    const named = wanted.map((wantedLimit) => ({ wantedLimit, name: nameOf(wantedLimit) }));
    const waitMillis = Math.max(
      ...named.map(({ wantedLimit, name }) => this.#millisUntil(wantedLimit, name, now)),
    );
    if (waitMillis > 0) return waitMillis;
    for (const { wantedLimit, name } of named) this.#grant(wantedLimit, name, Math.ceil(nowMillis));
    return 0;
  }

  /**
   * Gives back costs that were taken, because another limit denied the request. Costs that have left the window stay
   * forgotten.
   *
   * @param wanted the same list as in `take`
   * @param takenMillis the `nowMillis` of that `take`
   */
  giveBack(wanted: readonly WantedLimit[], takenMillis: number): void {
    const atMillis = Math.ceil(takenMillis);
    for (const wantedLimit of wanted) {
      const name = nameOf(wantedLimit);
      const grants = this.#byName.get(name);
      // Never from another granule: its costs would then count for too short a time.
      const granule = grants?.log.find((one) => one.beginMillis <= atMillis && atMillis <= one.atMillis);
      if (grants === undefined || granule === undefined || granule.cost < wantedLimit.cost) continue;
      granule.cost -= wantedLimit.cost;
      grants.used -= wantedLimit.cost;
      if (grants.used === 0) this.#byName.delete(name);
    }
  }

  #millisUntil({ limit, windowMillis, cost }: WantedLimit, name: string, now: number): number {
    const grants = this.#byName.get(name);
    if (cost > limit || (grants === undefined && !this.#hasRoom(now))) return windowMillis;
    if (grants === undefined) return 0;
    forgetOld(grants, now);
    let { used } = grants;
    if (used + cost <= limit) return 0;
    for (const granule of grants.log) {
      used -= granule.cost;
      if (used + cost <= limit) return granule.atMillis + windowMillis - now;
    }
    return windowMillis;
  }

  #grant({ windowMillis, cost }: WantedLimit, name: string, atMillis: number): void {
    const grants = this.#byName.get(name) ?? { log: [], windowMillis, used: 0 };
    // If the map is full, this name may be the first to become idle again.
    if (!this.#byName.has(name))
      this.#fullUntilMillis = Math.min(this.#fullUntilMillis, atMillis + windowMillis);
    this.#byName.set(name, grants);
    grants.used += cost;
    const last = grants.log.at(-1);
    if (last === undefined || atMillis - last.beginMillis >= windowMillis / GRANULES)
      grants.log.push({ beginMillis: atMillis, atMillis, cost });
    else {
      last.atMillis = atMillis;
      last.cost += cost;
    }
  }

  /** If the map is full, forgets the idle names. */
  #hasRoom(now: number): boolean {
    if (this.#byName.size < LOCAL_KEYS_MAX) return true;
    if (now < this.#fullUntilMillis) return false;
    this.#fullUntilMillis = Infinity;
    for (const [name, grants] of this.#byName) {
      const idleAtMillis = (grants.log.at(-1)?.atMillis ?? now) + grants.windowMillis;
      if (idleAtMillis <= now) this.#byName.delete(name);
      else this.#fullUntilMillis = Math.min(this.#fullUntilMillis, idleAtMillis);
    }
    return this.#byName.size < LOCAL_KEYS_MAX;
  }
}

function nameOf({ name, limit, windowMillis }: WantedLimit): string {
  return `${limit}/${windowMillis} ${name}`;
}

/** Forgets the granules that have left the window. */
function forgetOld(grants: Grants, now: number): void {
  const { log, windowMillis } = grants;
  const live = log.findIndex(({ atMillis }) => atMillis > now - windowMillis);
  for (const { cost } of log.splice(0, live === -1 ? log.length : live)) grants.used -= cost;
}
