/**
 * The workloads: which users send requests, in which order, under which rule. The same seed gives the same requests, so
 * that all things under load get the same. This file knows nothing about protocols.
 */
import { seededUnit } from './random.ts';

export interface LoadRule {
  readonly limit: number;
  readonly windowMillis: number;
}

/**
 * `open` is never reached. Its window is short, so that one measurement reaches the steady state in which grants expire
 * as fast as they come. `spent` is used up by the first request of a user. `small` is reached all the time.
 */
export const LOAD_RULES = {
  open: { limit: 1_000_000, windowMillis: 10_000 },
  spent: { limit: 1, windowMillis: 3_600_000 },
  small: { limit: 10, windowMillis: 1_000 },
} as const satisfies Record<string, LoadRule>;

export type LoadRuleId = keyof typeof LOAD_RULES;

export interface LoadRequest {
  readonly key: string;
  readonly rule: LoadRuleId;
}

/** Returns the next request; there is no last one. */
export type KeyChooser = () => LoadRequest;

export interface Workload {
  readonly id: WorkloadId;
  readonly description: string;
  /** Answers that are valid once the load is warm. Others make the measurement invalid. */
  readonly expects: 'grants' | 'denials' | 'both';
  /** Requests drawn before the load starts. They are sent again and again. */
  readonly requestsDrawn: number;
  /** Makes the source of requests. @param seed a 32-bit integer */
  readonly chooser: (seed: number) => KeyChooser;
}

export type WorkloadId = 'grants' | 'denials' | 'mixed' | 'abuse' | 'million' | 'zipf';

const USERS = 10_000;
const SPENT_USERS = 32;
const HOT_USERS = 10;
const MILLION = 1_000_000;
/** About a dozen requests for each of ten thousand users. */
const DRAWN = 131_072;
/** More than one measurement sends, so that users hardly repeat. */
const DRAWN_OF_MILLION = 1_048_576;
/** Close to real traffic, and skewed enough that the first user sends one request in ten. */
const ZIPF_EXPONENT = 1;

function uniform(unit: () => number, users: number, prefix: string, rule: LoadRuleId): KeyChooser {
  return () => ({ key: `${prefix}-${Math.floor(unit() * users)}`, rule });
}

/**
 * Draws ranks from 0. A user's fraction of the requests is proportional to one over its rank to the power of
 * `exponent`. It inverts the cumulative distribution.
 */
export function zipfRanks(unit: () => number, users: number, exponent: number): () => number {
  const cumulative = new Float64Array(users);
  let sum = 0;
  for (let rank = 0; rank < users; rank += 1) {
    sum += 1 / (rank + 1) ** exponent;
    cumulative[rank] = sum;
  }
  return () => {
    const drawn = unit() * sum;
    let low = 0;
    let high = users - 1;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((cumulative[middle] ?? sum) > drawn) high = middle;
      else low = middle + 1;
    }
    return low;
  };
}

const ALL: readonly Workload[] = [
  {
    id: 'grants',
    description: '10,000 users, none of which reaches its limit',
    expects: 'grants',
    requestsDrawn: DRAWN,
    chooser: (seed) => uniform(seededUnit(seed), USERS, 'user', 'open'),
  },
  {
    id: 'denials',
    description: '32 users whose hour is used up: denied after the first request of each',
    expects: 'denials',
    requestsDrawn: DRAWN,
    chooser: (seed) => uniform(seededUnit(seed), SPENT_USERS, 'spent', 'spent'),
  },
  {
    id: 'mixed',
    description: 'grants and denials, one half each',
    expects: 'both',
    requestsDrawn: DRAWN,
    chooser(seed) {
      const unit = seededUnit(seed);
      const granted = uniform(unit, USERS, 'user', 'open');
      const denied = uniform(unit, SPENT_USERS, 'spent', 'spent');
      return () => (unit() < 0.5 ? granted() : denied());
    },
  },
  {
    id: 'abuse',
    description: '10 users, 10 requests per second allowed to each: nearly all is denied, all the time',
    expects: 'both',
    requestsDrawn: DRAWN,
    chooser: (seed) => uniform(seededUnit(seed), HOT_USERS, 'hot', 'small'),
  },
  {
    id: 'million',
    description: 'a million users, none of which reaches its limit',
    expects: 'grants',
    requestsDrawn: DRAWN_OF_MILLION,
    chooser: (seed) => uniform(seededUnit(seed), MILLION, 'one', 'open'),
  },
  {
    id: 'zipf',
    description: '10,000 users by the law of Zipf, none of which reaches its limit',
    expects: 'grants',
    requestsDrawn: DRAWN,
    chooser(seed) {
      const rank = zipfRanks(seededUnit(seed), USERS, ZIPF_EXPONENT);
      return () => ({ key: `user-${rank()}`, rule: 'open' });
    },
  },
];

export const WORKLOADS: ReadonlyMap<WorkloadId, Workload> = new Map(ALL.map((each) => [each.id, each]));

/** Finds a workload by id. @throws RangeError if there is none */
export function workloadOf(id: WorkloadId): Workload {
  const workload = WORKLOADS.get(id);
  if (workload === undefined) throw new RangeError(`there is no workload ${id}`);
  return workload;
}

/** A limiter that Quorate is compared with: decides whether to grant a request. */
export type Limiter = (key: string, rule: LoadRuleId) => Promise<boolean> | boolean;
