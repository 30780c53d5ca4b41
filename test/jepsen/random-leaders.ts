/**
 * The leaders of the simulated limiter of random histories: what each knows of its users, and its time. They are right,
 * or wrong in one chosen way. Uses no code of the checkers except the sequential model.
 */
import { groupWindowMillis, UserModel } from './model.ts';

/**
 * - `lostGrants`: a new leader lacks the last entries
 * - `lostGrantsReusedIndexes`: the same, and it puts its own entries in their place
 * - `staleAllow`: a former leader still grants while the new one does, too
 * - `clockAhead`: a new leader's group time jumps forward
 * - `windowShort`, `windowLong`: off by one millisecond
 * - `duplicateApply`: sometimes a grant is charged twice
 * - `retryCharged`: a retry is charged again
 * - `onePlace`: every receipt names the first place of its entry
 */
export type Bug =
  | 'lostGrants'
  | 'lostGrantsReusedIndexes'
  | 'staleAllow'
  | 'clockAhead'
  | 'windowShort'
  | 'windowLong'
  | 'duplicateApply'
  | 'retryCharged'
  | 'onePlace';

export const DRIFT_PPM = 100;
const ORIGIN_MILLIS = 1_700_000_000_000;

export interface Rule {
  readonly id: string;
  readonly limit: number;
  readonly windowMillis: number;
  readonly isEventTime: boolean;
}

export function windowOf({ windowMillis, isEventTime }: Rule): number {
  return isEventTime ? windowMillis : groupWindowMillis(windowMillis, DRIFT_PPM);
}

export interface Decision {
  readonly allowed: boolean;
  readonly remaining: number;
  readonly t: number;
  readonly index: number;
  /** Position in the entry; undefined if it was read from the state. */
  readonly position: number | undefined;
  readonly term: number;
}

/** A user under a rule. */
interface Limited {
  readonly rule: Rule;
}

interface UserState {
  readonly model: UserModel;
  readonly grants: { readonly index: number; readonly t: number; readonly cost: number }[];
  readonly answers: Map<string, Decision>;
}

interface LeaderInit {
  readonly term: number;
  readonly index: number;
  readonly lagMillis: number;
  readonly newestMillis: number;
  readonly bug: Bug | undefined;
}

export class Leader {
  readonly term: number;
  index: number;
  /** Group time is real time minus this. */
  lagMillis: number;
  /** No entry gets a stamp below that of the last one in the log. */
  newestMillis: number;
  readonly #bug: Bug | undefined;
  readonly #users = new Map<Limited, UserState>();

  constructor({ term, index, lagMillis, newestMillis, bug }: LeaderInit) {
    this.term = term;
    this.index = index;
    this.lagMillis = lagMillis;
    this.newestMillis = newestMillis;
    this.#bug = bug;
  }

  /** @param now in milliseconds since the history began */
  groupMillis(now: number): number {
    return Math.max(this.newestMillis, Math.floor(ORIGIN_MILLIS + now - this.lagMillis));
  }

  /** The time at which a request with this timestamp is judged. */
  timeOf(user: Limited, timestampMillis: number | null, now: number): number {
    const groupMillis = this.groupMillis(now);
    if (!user.rule.isEventTime) return groupMillis;
    const newest = this.stateOf(user).grants.at(-1)?.t ?? 0;
    return Math.max(timestampMillis ?? groupMillis, newest);
  }

  stateOf(user: Limited): UserState {
    let state = this.#users.get(user);
    if (state === undefined) {
      const off = this.#bug === 'windowShort' ? -1 : this.#bug === 'windowLong' ? 1 : 0;
      const model = new UserModel(user.rule.limit, windowOf(user.rule) + off);
      state = { model, grants: [], answers: new Map() };
      this.#users.set(user, state);
    }
    return state;
  }

  /** Takes over the knowledge of another leader, up to an index. */
  learnFrom(other: Leader, through = Infinity): void {
    for (const [user, { model, grants, answers }] of other.#users) {
      const copy = new UserModel(model.limit, model.windowMillis);
      const kept = grants.filter(({ index }) => index <= through);
      for (const { t, cost } of kept) copy.record(t, cost);
      const remembered = [...answers].filter(([, { index }]) => index <= through);
      this.#users.set(user, { model: copy, grants: kept, answers: new Map(remembered) });
    }
  }
}
