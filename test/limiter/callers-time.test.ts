/**
 * Promise 1 in the callers' time: no window over a user's grants of one day holds more than the limit, for timestamps
 * of any epoch, in any order, and with keys forgotten and snapshots taken in between.
 */
import { describe, expect, it } from 'vitest';
import { FAR_EPOCH_HORIZON_MILLIS } from '../../src/limiter/state/lost-history.ts';
import { forEachSeed, ROUNDS, seeded } from '../raft/seeded.ts';
import { Harness, restoreInto, snapshotOf, START, tableOf } from './harness.ts';

const DAY_MILLIS = 86_400_000;
const MONTH_MILLIS = 2_678_400_000;
/** Seconds mistaken for milliseconds. */
const FAR = START / 1_000;
const STEPS = 90;

interface Grant {
  readonly timeMillis: number;
  readonly madeMillis: number;
  readonly cost: number;
}

/** The largest cost in any window, over grants made less than a day apart. */
function mostIn(grants: readonly Grant[], windowMillis: number): number {
  let most = 0;
  for (const { timeMillis: end } of grants) {
    const inside = grants.filter(({ timeMillis: t }) => t <= end && t > end - windowMillis);
    const made = inside.map(({ madeMillis }) => madeMillis);
    if (Math.max(...made) - Math.min(...made) >= FAR_EPOCH_HORIZON_MILLIS) continue;
    most = Math.max(
      most,
      inside.reduce((sum, { cost }) => sum + cost, 0),
    );
  }
  return most;
}

function run(seed: number): void {
  const random = seeded(seed);
  const pick = <T>(values: readonly [T, ...T[]]): T => values[random(values.length)] ?? values[0];
  const windowMillis = pick([1_000, 1_000, 50_000, MONTH_MILLIS]);
  const limit = pick([1, 2, 3, 5]);
  const harness = new Harness();
  harness.rules(tableOf(1, [{ limit, windowMillis }]));
  const grants = { ada: [] as Grant[], bob: [] as Grant[] };

  const grantedMillis = (own: readonly Grant[]): number =>
    own[random(Math.max(1, own.length))]?.timeMillis ?? START;
  const stamp = (userId: 'ada' | 'bob'): number | undefined =>
    pick<() => number | undefined>([
      () => undefined,
      () => harness.nowMillis - pick([0, 1, 500, 5_000, 59_000, 61_000, windowMillis, windowMillis + 1]),
      () => FAR + pick([0, 1, 500, 999, 1_000, 1_001, 5_000, 60_000]),
      () => START - MONTH_MILLIS + pick([-windowMillis - 1, -windowMillis, -1_000, -1, 0, 1, 1_000]),
      () => pick([0, 1, 1_000]),
      () => harness.nowMillis + pick([1, 60_000, 180_000]),
      () => grantedMillis(grants[userId]) + pick([-1, 0, 1, windowMillis - 1, windowMillis]),
    ])();

  const ask = (): void => {
    const userId = pick(['ada', 'bob'] as const);
    const cost = pick([1, 1, Math.min(2, limit)]);
    const timestampMillis = stamp(userId);
    if (timestampMillis !== undefined && timestampMillis < 0) return;
    const { allowed, decided } = harness.one({ userId, cost, timestampMillis });
    if (!allowed) return;
    grants[userId].push({ timeMillis: decided.timeMillis, madeMillis: harness.nowMillis, cost });
    const most = mostIn(grants[userId], windowMillis);
    if (most > limit) throw new Error(`${most} of ${limit} in ${windowMillis} ms, user ${userId}`);
  };

  const steps = [
    ...Array.from({ length: 7 }, () => () => {
      harness.nowMillis += pick([0, 1, 999, 1_001, 61_001, 111_000, DAY_MILLIS, MONTH_MILLIS + 70_000]);
    }),
    ...Array.from({ length: 9 }, () => ask),
    ...Array.from({ length: 3 }, () => () => harness.machine.apply({ type: 'sweep' }, harness.next())),
    () => restoreInto(harness.machine, snapshotOf(harness.machine)),
  ];
  for (let i = 0; i < STEPS; i += 1) steps[random(steps.length)]?.();
}

describe('timestamps of any epoch', () => {
  it('are granted no more than the limit in any window', () => {
    const seeds = Array.from({ length: 200 * ROUNDS }, (_, i) => i + 1);
    expect(() => forEachSeed(seeds, run)).not.toThrow();
  });
});
