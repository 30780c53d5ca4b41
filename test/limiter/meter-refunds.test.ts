/**
 * Refunds for each meter, on random histories: the meter behaves as if less had been granted, and gives back no
 * more than the part that still counted. To repeat a history that fails: `METER_SEED=n npx vitest run
 * test/limiter/meter-refunds.test.ts`.
 */
import { describe, expect, it } from 'vitest';
import type { Rule } from '../../src/api/rule.ts';
import type { Demand, Meter } from '../../src/limiter/meters/meter.ts';
import { meterOf } from '../../src/limiter/meters/meter-of.ts';
import { snapshotReader, snapshotWriter } from '../../src/limiter/state/snapshot-bytes.ts';
import { StateSize } from '../../src/limiter/state/state-size.ts';
import { Random } from '../sim/random.ts';
import { type NaiveMeter, naiveCapacity, naiveMeterOf, naiveWait } from './naive-meters.ts';
import { ROUNDS } from '../raft/seeded.ts';

const HISTORIES = 750 * ROUNDS;
const STEPS_MAX = 40;

const PLAIN = { id: 'r', clock: 'request' } as const;
const METERS: readonly (readonly [string, (random: Random) => Rule])[] = [
  ['a sliding log', (random) => ({ ...PLAIN, limit: random.pick([1, 7, 100]), windowMillis: 100 })],
  [
    'a sliding log by granules',
    (random) => {
      const granularityMillis = random.pick([2, 7, 100]);
      return { ...PLAIN, limit: random.pick([1, 7, 100]), windowMillis: 100, granularityMillis };
    },
  ],
  [
    'a sliding counter',
    (random) => ({ ...PLAIN, limit: random.pick([1, 7, 100]), windowMillis: 100, meter: 'slidingCounter' }),
  ],
  [
    'a fixed window',
    (random) => ({ ...PLAIN, limit: random.pick([1, 7, 100]), windowMillis: 100, meter: 'fixedWindow' }),
  ],
  [
    'a token bucket',
    (random) => ({
      ...PLAIN,
      limit: random.pick([1, 3, 100, 1_000_000]),
      windowMillis: random.pick([1, 7, 100, 86_400_000]),
      meter: 'tokenBucket',
      burst: random.pick([1, 10, 1_000_000]),
    }),
  ],
  [
    'a leaky bucket',
    (random) => ({
      ...PLAIN,
      limit: random.pick([1, 3, 100]),
      windowMillis: 100,
      meter: 'leakyBucket',
      burst: random.pick([1, 5]),
      queue: random.pick([1, 20]),
    }),
  ],
];

interface Granted {
  readonly demand: Demand;
  back: number;
  isRefunded: boolean;
}

/** A model to which that much less was granted from the start. */
function without(rule: Rule, granted: readonly Granted[]): NaiveMeter {
  const naive = naiveMeterOf(rule);
  for (const { demand, back } of granted) naive.grant(demand, demand.cost - back);
  return naive;
}

/**
 * For a bucket, the cost that has not drained. For other meters the whole cost, because grants that are out do not
 * count.
 */
function givenBack({ meter, limit, windowMillis }: Rule, { demand }: Granted, newestMillis: number): number {
  if (meter !== 'tokenBucket' && meter !== 'leakyBucket') return demand.cost;
  const parts = BigInt(demand.cost) * BigInt(windowMillis) - BigInt(newestMillis - demand.t) * BigInt(limit);
  return parts < 0n ? 0 : Number(parts / BigInt(windowMillis));
}

function written(meter: Meter): Uint8Array {
  const out = snapshotWriter();
  const view = meter.view();
  view.show(0);
  view.write(out, 1_000, 0);
  return out.take();
}

function restored(rule: Rule, bytes: Uint8Array): Meter {
  const meter = emptyMeter(rule);
  const input = snapshotReader();
  input.load(bytes);
  if (meter.read(0, input, 1_000, 0) !== 0 || !input.isAtEnd)
    throw new Error('the snapshot of the meter has unread bytes');
  return meter;
}

function emptyMeter(rule: Rule): Meter {
  const meter = meterOf(rule, new StateSize());
  meter.add();
  return meter;
}

function compare(meter: Meter, naive: NaiveMeter, wanted: Demand): void {
  const capacity = naiveCapacity(wanted.rule);
  const wait = meter.millisUntilAvailable(0, wanted, wanted.cost);
  const drain = meter.millisUntilEmpty(0, wanted);
  const said = [meter.newestMillis(0), meter.liveCost(0, wanted), wait, drain];
  const must = [
    naive.newestMillis,
    naive.spent(wanted),
    naiveWait(naive, wanted, capacity - wanted.cost, wait),
    naiveWait(naive, wanted, 0, drain),
  ];
  if (said.join() !== must.join()) throw new Error(`[${said.join()}], must be [${must.join()}]`);
}

/** Returns the cost that was given back. */
function play(seed: number, draw: (random: Random) => Rule): number {
  const random = new Random(seed);
  const rule = draw(random);
  let meter = emptyMeter(rule);
  const granted: Granted[] = [];
  let naive = naiveMeterOf(rule);
  let back = 0;
  let t = 1_700_000_000_000 + random.between(0, 100);
  const restoredAt = random.between(1, STEPS_MAX);
  for (let step = 0; step < STEPS_MAX; step += 1) {
    t += random.pick([0, 0, 1, random.between(1, 10), random.between(1, rule.windowMillis)]);
    const capacity = naiveCapacity(rule);
    const cost = random.pick([1, 1, random.between(1, capacity), capacity]);
    const keptMillis = rule.windowMillis + 2;
    const windowMillis = random.chance(0.3) ? keptMillis : rule.windowMillis;
    const wanted: Demand = { rule, t, cost, windowMillis, keptMillis };
    compare(meter, naive, wanted);
    if (naive.spent(wanted) + cost <= capacity) {
      meter.grant(0, wanted);
      naive.grant(wanted, cost);
      granted.push({ demand: { ...wanted }, back: 0, isRefunded: false });
    }
    if (step === restoredAt && granted.length > 0) meter = restored(rule, written(meter));
    const refunded = granted.at(-random.between(1, 4));
    if (refunded?.isRefunded !== false || random.chance(0.5)) continue;
    refunded.isRefunded = true;
    refunded.back = givenBack(rule, refunded, naive.newestMillis);
    meter.refund(0, refunded.demand.t, refunded.demand.cost, rule, t);
    naive = without(rule, granted);
    back += refunded.back;
    compare(meter, naive, wanted);
  }
  return back;
}

describe.each(METERS)('%s', (_, draw) => {
  it(`is after refunds as if the refunded cost had never been granted, in ${HISTORIES} histories`, () => {
    const only = process.env['METER_SEED'];
    const seeds = only === undefined ? Array.from({ length: HISTORIES }, (__, i) => i + 1) : [Number(only)];
    let back = 0;
    for (const seed of seeds) {
      try {
        back += play(seed, draw);
      } catch (error) {
        throw new Error(`history ${seed}: METER_SEED=${seed}`, { cause: error });
      }
    }
    expect(back).toBeGreaterThan(seeds.length);
  });
});
