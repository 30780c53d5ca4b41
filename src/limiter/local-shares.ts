/**
 * What one process may grant by itself while nobody can decide: a sliding log for each key, in memory. Nodes use it for rules that
 * are `local`, clients for their fail mode of that name. It begins anew with its process, and knows nothing of other processes.
 */

/** What is wanted for one key under one limit. */
export interface WantedShare {
  /** The key, and whatever else tells this share from others of the same limit and window. */
  readonly name: string;
  readonly limit: number;
  readonly windowMillis: number;
  /** 1 and more. */
  readonly cost: number;
}

export const LOCAL_KEYS_MAX = 16_384;
/** A key remembers so many times and two, however much it was granted. */
const GRANULES = 16;

interface Granule {
  readonly beginMillis: number;
  /** When all of its grants count as granted: at the last of them. */
  atMillis: number;
  cost: number;
}

interface Grants {
  /** Oldest first. */
  readonly log: Granule[];
  readonly windowMillis: number;
  /** The cost of all in the log. */
  used: number;
}

/**
 * **Guarantee.** A name is granted at most `limit` in any rolling window, but for what is given back. A grant counts longer than it must, by a 16th of the window
 * at most. While `LOCAL_KEYS_MAX` names have grants that count, a name that has none is denied.
 */
export class LocalShares {
  readonly #byName = new Map<string, Grants>();
  /** Before, none of the names becomes idle. */
  #fullUntilMillis = 0;

  /** Names that are remembered. */
  get size(): number {
    return this.#byName.size;
  }

  /**
   * Takes the costs from all of these shares, or from none.
   *
   * @param nowMillis on a clock that never goes back, with its fractions
   * @returns milliseconds until all of them fit if nothing else is taken; 0: they were taken
   */
  take(wanted: readonly WantedShare[], nowMillis: number): number {
    // A grant counts from the end of its millisecond, and until the begin of another: never shorter than it must.
    const now = Math.floor(nowMillis);
    const named = wanted.map((share) => ({ share, name: nameOf(share) }));
    const waitMillis = Math.max(...named.map(({ share, name }) => this.#millisUntil(share, name, now)));
    if (waitMillis > 0) return waitMillis;
    for (const { share, name } of named) this.#grant(share, name, Math.ceil(nowMillis));
    return 0;
  }

  /**
   * Gives back what these shares were taken for: another limit denied the request. What has left its window by now stays forgotten.
   *
   * @param wanted as they were taken
   * @param takenMillis `nowMillis` of then
   */
  giveBack(wanted: readonly WantedShare[], takenMillis: number): void {
    const atMillis = Math.ceil(takenMillis);
    for (const share of wanted) {
      const name = nameOf(share);
      const grants = this.#byName.get(name);
      // From no other granule: its costs would count for a shorter time than they must.
      const granule = grants?.log.find((one) => one.beginMillis <= atMillis && atMillis <= one.atMillis);
      if (grants === undefined || granule === undefined || granule.cost < share.cost) continue;
      granule.cost -= share.cost;
      grants.used -= share.cost;
      if (grants.used === 0) this.#byName.delete(name);
    }
  }

  #millisUntil({ limit, windowMillis, cost }: WantedShare, name: string, now: number): number {
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

  #grant({ windowMillis, cost }: WantedShare, name: string, atMillis: number): void {
    const grants = this.#byName.get(name) ?? { log: [], windowMillis, used: 0 };
    // When the map is full it may be the first that is idle again.
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

  /** Forgets whoever is idle, if that is what it takes. */
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

function nameOf({ name, limit, windowMillis }: WantedShare): string {
  return `${limit}/${windowMillis} ${name}`;
}

/** What is out of its window. */
function forgetOld(grants: Grants, now: number): void {
  const { log, windowMillis } = grants;
  const live = log.findIndex(({ atMillis }) => atMillis > now - windowMillis);
  for (const { cost } of log.splice(0, live === -1 ? log.length : live)) grants.used -= cost;
}
