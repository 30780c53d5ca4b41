/**
 * The sequential model of one user under one rule: the legal answers of a limiter that handles one request at a time.
 * Plain lists, no code of the product. If a grant's answer was lost, its time may be known only within bounds.
 */

/**
 * - `strict`: every answer must be right
 * - `lenient`: a denial is always legal; only too many grants are wrong
 */
export type Mode = 'strict' | 'lenient';

/**
 * The window that the product promises to use between two stamps of group time: widened by six fifths of the drift,
 * plus one for rounding.
 */
export function groupWindowMillis(windowMillis: number, driftPpm: number): number {
  const leaderPpm = driftPpm + Math.ceil(driftPpm / 5);
  return windowMillis + Math.ceil((windowMillis * leaderPpm) / 1_000_000) + 1;
}

interface Recorded {
  /** -Infinity for a grant that no client saw: it never counts as certain. */
  readonly earliestMillis: number;
  /** Infinity for a grant that no client saw, until a later grant bounds it. */
  latestMillis: number;
  readonly cost: number;
}

export class UserModel {
  readonly limit: number;
  readonly windowMillis: number;
  readonly #grants: Recorded[] = [];
  #newestMillis = -Infinity;

  constructor(limit: number, windowMillis: number) {
    this.limit = limit;
    this.windowMillis = windowMillis;
  }

  /** The cost that certainly counts at `t`. A grant exactly a window old is out. */
  liveAtLeast(t: number, windowMillis = this.windowMillis): number {
    let cost = 0;
    for (const grant of this.#grants) if (grant.earliestMillis > t - windowMillis) cost += grant.cost;
    return cost;
  }

  /** The cost that may count at `t`. */
  liveAtMost(t: number, windowMillis = this.windowMillis): number {
    let cost = 0;
    for (const grant of this.#grants) if (grant.latestMillis > t - windowMillis) cost += grant.cost;
    return cost;
  }

  /** Whether this may be the next answer. */
  isLegal(allowed: boolean, t: number, cost: number, mode: Mode, windowMillis = this.windowMillis): boolean {
    if (allowed) return t >= this.#newestMillis && this.liveAtLeast(t, windowMillis) + cost <= this.limit;
    return mode === 'lenient' || this.liveAtMost(t, windowMillis) + cost > this.limit;
  }

  /** Records a grant made at `t`. Returns a function that undoes it. Undo in reverse order. */
  record(t: number, cost: number): () => void {
    const before = this.#newestMillis;
    const bounded = this.#grants.filter((grant) => grant.latestMillis === Infinity);
    for (const grant of bounded) grant.latestMillis = t;
    this.#grants.push({ earliestMillis: t, latestMillis: t, cost });
    this.#newestMillis = t;
    return () => {
      this.#grants.pop();
      this.#newestMillis = before;
      for (const grant of bounded) grant.latestMillis = Infinity;
    };
  }

  /** Records a grant that no client saw, made at an unknown time at or before that of the next grant. */
  recordUnseen(cost: number): () => void {
    this.#grants.push({ earliestMillis: -Infinity, latestMillis: Infinity, cost });
    return () => this.#grants.pop();
  }

  /** The part of the state that later answers depend on besides the recorded operations. */
  unseenKey(): string {
    const unseen = this.#grants.filter((grant) => grant.earliestMillis === -Infinity);
    return unseen.map((grant) => `${grant.latestMillis}x${grant.cost}`).join(' ');
  }

  /** The ideal limiter: decides, and records the grant. */
  ask(t: number, cost: number, windowMillis = this.windowMillis): { allowed: boolean; remaining: number } {
    const live = this.liveAtLeast(t, windowMillis);
    const allowed = live + cost <= this.limit;
    if (allowed) this.record(t, cost);
    return { allowed, remaining: Math.max(0, this.limit - live - (allowed ? cost : 0)) };
  }

  /** Drops grants that no request at or after `t` can count any more. */
  forgetBefore(t: number): void {
    const keep = this.#grants.findIndex((grant) => grant.latestMillis > t - this.windowMillis);
    this.#grants.splice(0, keep === -1 ? this.#grants.length : keep);
  }
}
