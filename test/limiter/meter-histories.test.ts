/**
 * Each meter compared with a naive model on random histories: costs, bursts, edges of windows, time that stops,
 * runs back and jumps, rule changes, and a snapshot in the middle. To repeat a history that fails: `METER_SEED=n npx
 * vitest run test/limiter/meter-histories.test.ts`.
 */
import { describe, expect, it } from 'vitest';
import type { Rule } from '../../src/api/rule.ts';
import { capacityOf } from '../../src/api/rule.ts';
import type { Demand, Meter } from '../../src/limiter/meters/meter.ts';
import { meterOf } from '../../src/limiter/meters/meter-of.ts';
import { snapshotReader, snapshotWriter } from '../../src/limiter/state/snapshot-bytes.ts';
import { StateSize } from '../../src/limiter/state/state-size.ts';
import { type NaiveMeter, naiveCapacity, naiveMeterOf, naiveWait, WAIT_MILLIS_MAX } from './naive-meters.ts';
import { Random } from '../sim/random.ts';
import { IS_LONG, ROUNDS } from '../raft/seeded.ts';

const HISTORIES = (IS_LONG ? 5_000 : 2_500) * ROUNDS;
const STEPS_MAX = 24;
const STARTS = [0, 1_000, 1_700_000_000_000, 1_709_251_100_000, 8_000_000_000_000_000];
const WINDOWS = [1, 7, 100, 1_000, 60_000, 86_400_000, 2_678_400_000];
const LIMITS = [1, 2, 3, 7, 100, 999_983, 1_000_000];

type Draw = (random: Random) => Rule;

function plain(random: Random): Rule {
  const limit = random.chance(0.03) ? 0 : random.pick(LIMITS);
  return { id: 'r', limit, windowMillis: random.pick(WINDOWS), clock: 'request' };
}

function bucket(random: Random): Rule {
  const rule = plain(random);
  return random.chance(0.5)
    ? { ...rule, meter: 'tokenBucket' }
    : { ...rule, meter: 'tokenBucket', burst: random.pick(LIMITS) };
}

const METERS: readonly (readonly [string, Draw])[] = [
  ['a sliding log', plain],
  [
    'a sliding log by granules',
    (random) => {
      const rule = plain(random);
      const windowMillis = Math.max(2, rule.windowMillis);
      const coarsest = Math.min(windowMillis, 86_400_000);
      const granularityMillis = random.pick([2, coarsest, Math.max(2, Math.floor(coarsest / 60))]);
      return { ...rule, windowMillis, granularityMillis };
    },
  ],
  ['a sliding counter', (random) => ({ ...plain(random), meter: 'slidingCounter' })],
  [
    'a fixed window',
    (random) => {
      const rule: Rule = { ...plain(random), meter: 'fixedWindow' };
      return random.chance(0.7) ? rule : { ...rule, windowMillis: 2_678_400_000, calendar: 'month' };
    },
  ],
  ['a token bucket', bucket],
  [
    'a leaky bucket',
    (random) => {
      const { limit, windowMillis, id, clock } = plain(random);
      const burst = random.pick([1, 5, 100]);
      const queue = random.pick([1, 10, 1_000]);
      return { id, limit, windowMillis, clock, meter: 'leakyBucket', burst, queue };
    },
  ],
];

function widened(windowMillis: number): number {
  return Math.ceil((windowMillis * 1_000_600) / 1_000_000) + 1;
}

/** The next time to ask about, often one at which an answer may change. */
function nextMillis(random: Random, asked: number, { windowMillis, granularityMillis = 1 }: Rule): number {
  const span = random.pick([windowMillis, granularityMillis, widened(windowMillis)]);
  const jump = random.pick(['none', 'none', 'little', 'part', 'edge', 'window', 'back', 'far'] as const);
  switch (jump) {
    case 'none':
      return asked;
    case 'little':
      return asked + random.between(1, 3);
    case 'part':
      return asked + random.between(0, span);
    case 'edge':
      return asked - (asked % span) + span + random.between(-1, 1);
    case 'window':
      return asked + span + random.between(-1, 1);
    case 'back':
      return Math.max(0, asked - random.between(1, span));
    case 'far':
      return asked + span * random.between(2, 1_000);
  }
}

/** A meter with one key, in slot 0. */
class Key {
  meter: Meter;
  readonly #rule: Rule;

  constructor(rule: Rule) {
    this.#rule = rule;
    this.meter = this.#empty();
  }

  #empty(): Meter {
    const meter = meterOf(this.#rule, new StateSize());
    meter.add();
    return meter;
  }

  get written(): Uint8Array {
    const out = snapshotWriter();
    const view = this.meter.view();
    view.show(0);
    if (view.write(out, 1_000, 0) !== 0) throw new Error('a meter of one key has more than one part');
    return out.take();
  }

  /** Continues with the meter read from a snapshot. */
  restore(): void {
    const { written } = this;
    const input = snapshotReader();
    input.load(written);
    this.meter = this.#empty();
    const isWhole = this.meter.read(0, input, 1_000, 0) === 0 && input.isAtEnd;
    if (!isWhole) throw new Error('the snapshot of the meter has unread bytes');
    mustBeSame(this.written, written);
  }
}

/** One `expect` for each of a million steps would take longer than the steps. */
function mustBeSame(said: ArrayLike<unknown>, must: ArrayLike<unknown>): void {
  const isSame = said.length === must.length && Array.from(said).every((value, i) => value === must[i]);
  if (!isSame) throw new Error(`[${Array.from(said).join(', ')}], must be [${Array.from(must).join(', ')}]`);
}

function askBoth(meter: Meter, naive: NaiveMeter, wanted: Demand): void {
  const { rule, t, cost, windowMillis } = wanted;
  const capacity = naiveCapacity(rule);
  const idleAt = meter.idleAtMillis(0, windowMillis, rule);
  const wait = meter.millisUntilAvailable(0, wanted, cost);
  const drain = meter.millisUntilEmpty(0, wanted);
  const said = [
    capacityOf(rule),
    meter.newestMillis(0),
    meter.liveCost(0, wanted),
    wait,
    drain,
    idleAt >= WAIT_MILLIS_MAX || naive.spent({ ...wanted, t: Math.max(t, idleAt) }) === 0,
  ];
  const must = [
    capacity,
    naive.newestMillis,
    naive.spent(wanted),
    naiveWait(naive, wanted, capacity - cost, wait),
    naiveWait(naive, wanted, 0, drain),
    true,
  ];
  mustBeSame(said, must);
}

/** Returns the number of grants. */
function play(seed: number, draw: Draw): number {
  const random = new Random(seed);
  let rule = draw(random);
  const key = new Key(rule);
  const unbroken = new Key(rule);
  const naive = naiveMeterOf(rule);
  const steps = random.between(1, STEPS_MAX);
  const restoredAt = random.between(0, steps - 1);
  const isMixed = random.chance(0.3);
  let asked = random.pick(STARTS) + random.between(0, 100);
  let grants = 0;
  for (let step = 0; step < steps; step += 1) {
    if (random.chance(0.08)) rule = draw(random);
    asked = Math.min(8_640_000_000_000_000, nextMillis(random, asked, rule));
    const t = Math.max(asked, naive.newestMillis);
    const capacity = Math.max(1, naiveCapacity(rule));
    const cost = random.pick([
      1,
      1,
      1,
      random.between(1, capacity),
      capacity,
      Math.min(1_000_000, capacity + 1),
    ]);
    const keptMillis = widened(rule.windowMillis);
    const windowMillis = isMixed && random.chance(0.5) ? keptMillis : rule.windowMillis;
    const wanted: Demand = { rule, t, cost, windowMillis, keptMillis };
    askBoth(key.meter, naive, wanted);
    if (naive.spent(wanted) + cost <= naiveCapacity(rule)) {
      grants += 1;
      naive.grant(wanted, cost);
      for (const { meter } of [key, unbroken]) meter.grant(0, wanted);
    }
    if (step === restoredAt && grants > 0) key.restore();
  }
  if (grants > 0) mustBeSame(key.written, unbroken.written);
  return grants;
}

describe.each(METERS)('%s', (_, draw) => {
  it(`decides ${HISTORIES} histories as a naive model does, also from a snapshot on`, () => {
    const only = process.env['METER_SEED'];
    const seeds = only === undefined ? Array.from({ length: HISTORIES }, (__, i) => i + 1) : [Number(only)];
    let grants = 0;
    for (const seed of seeds) {
      try {
        grants += play(seed, draw);
      } catch (error) {
        throw new Error(`history ${seed}: METER_SEED=${seed}`, { cause: error });
      }
    }
    expect(grants).toBeGreaterThan(seeds.length);
  });
});
