/** The guarantee in the comment of each meter, checked on random histories granted by the state machine. */
import { describe, expect, it } from 'vitest';
import type { Rule } from '../../src/api/rule.ts';
import { Random } from '../sim/random.ts';
import { harnessWith, START } from './harness.ts';
import { ROUNDS } from '../raft/seeded.ts';

const HISTORIES = 150 * ROUNDS;
const WINDOW = 1_000;

interface Grant {
  readonly t: number;
  readonly cost: number;
  /** The time at which the request may proceed. */
  readonly goesOn: number;
}

function costOf(grants: readonly Grant[]): number {
  return grants.reduce((sum, { cost }) => sum + cost, 0);
}

/** All intervals that begin and end with a grant: their length and granted cost. */
function intervals(grants: readonly Grant[], time: (grant: Grant) => number) {
  const byTime = grants.toSorted((a, b) => time(a) - time(b));
  return byTime.flatMap((first, i) =>
    byTime.slice(i).map((last, j) => ({
      first: time(first),
      last: time(last),
      cost: costOf(byTime.slice(i, i + j + 1)),
    })),
  );
}

type Guarantee = (rule: Rule, grants: readonly Grant[]) => boolean;

/** No window at any position holds more than the limit. */
const rolling: Guarantee = ({ limit }, grants) =>
  intervals(grants, ({ t }) => t).every(({ first, last, cost }) => last - first >= WINDOW || cost <= limit);

const aligned: Guarantee = ({ limit }, grants) => {
  const starts = new Set(grants.map(({ t }) => Math.floor(t / WINDOW)));
  return [...starts].every(
    (start) => costOf(grants.filter(({ t }) => Math.floor(t / WINDOW) === start)) <= limit,
  );
};

const approximate: Guarantee = (rule, grants) =>
  aligned(rule, grants) &&
  intervals(grants, ({ t }) => t).every(({ first, last, cost }) => {
    const start = Math.floor(last / WINDOW);
    const before = costOf(grants.filter(({ t }) => Math.floor(t / WINDOW) === start - 1));
    const fraction = Math.ceil((before * (last % WINDOW)) / WINDOW);
    return last - first >= WINDOW || (cost <= rule.limit + fraction && cost <= 2 * rule.limit);
  });

/** In exact fractions: `limit` tokens flow in per window. */
const flow =
  (time: (grant: Grant) => number, size: (rule: Rule) => number): Guarantee =>
  (rule, grants) =>
    intervals(grants, time).every(
      ({ first, last, cost }) => (cost - size(rule)) * WINDOW <= rule.limit * (last - first),
    );

const queued: Guarantee = (rule, grants) =>
  flow(
    ({ t }) => t,
    ({ burst = 0, queue = 0 }) => burst + queue,
  )(rule, grants) &&
  flow(
    ({ goesOn }) => goesOn,
    ({ burst = 0 }) => burst,
  )(rule, grants);

const METERS: readonly (readonly [string, Partial<Rule>, Guarantee])[] = [
  ['a sliding log', {}, rolling],
  ['a sliding log by granules', { granularityMillis: 70 }, rolling],
  ['a sliding counter', { meter: 'slidingCounter' }, approximate],
  ['a fixed window', { meter: 'fixedWindow' }, aligned],
  [
    'a token bucket',
    { meter: 'tokenBucket', burst: 9 },
    flow(
      ({ t }) => t,
      ({ burst = 0 }) => burst,
    ),
  ],
  ['a leaky bucket', { meter: 'leakyBucket', burst: 2, queue: 5 }, queued],
];

/** @param isSingle for queues, each cost alone: no more may proceed at once than the burst */
function granted(rule: Partial<Rule>, seed: number, isSingle: boolean): Grant[] {
  const random = new Random(seed);
  const harness = harnessWith({ id: 'r', windowMillis: WINDOW, ...rule });
  const grants: Grant[] = [];
  let asked = START;
  for (let i = 0; i < 40; i += 1) {
    asked += random.pick([0, 0, 1, random.between(1, 200), random.between(-100, 100), 1_000]);
    const cost = isSingle ? 1 : random.pick([1, 1, 2, 3]);
    const { allowed, waitMillis = 0, decided } = harness.one({ userId: 'ada', cost, timestampMillis: asked });
    if (allowed) grants.push({ t: decided.timeMillis, cost, goesOn: asked + waitMillis });
  }
  return grants;
}

describe.each(METERS)('%s', (_, fields, isKept) => {
  it('keeps its guarantee', () => {
    const broken: number[] = [];
    let grants = 0;
    for (let seed = 1; seed <= HISTORIES; seed += 1) {
      const limit = 3 + (seed % 5);
      const rule = { id: 'r', limit, windowMillis: WINDOW, clock: 'request', ...fields } satisfies Rule;
      const made = granted({ ...fields, limit }, seed, fields.queue !== undefined);
      grants += made.length;
      if (!isKept(rule, made)) broken.push(seed);
    }
    expect(broken).toEqual([]);
    expect(grants).toBeGreaterThan(HISTORIES * 5);
  });
});
