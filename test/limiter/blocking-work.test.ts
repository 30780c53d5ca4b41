/** One piece of work on a state must not take longer when there are more users. `bench:stalls` prints numbers. */
import { describe, expect, it } from 'vitest';
import { Harness, START, tableOf } from './harness.ts';

const FEW = 5_000;
const MANY = 80_000;
const USERS_PER_ENTRY = 100;
const HOUR_MILLIS = 3_600_000;
/** The time that the garbage collector adds, on any of its threads. */
const NOISE_MILLIS = 10;
/** On a busy machine the collector's threads compete with the measured work, so the measurement is repeated. */
const LIVES_MAX = 4;

const KINDS = ['growth', 'snapshot', 'restore', 'install', 'rules', 'eviction'] as const;

type Slices = Record<(typeof KINDS)[number], number[]>;

/**
 * Processor time of each piece of work in milliseconds, while the state grows from no users to `users` and shrinks
 * again. Wall time would depend on other work of the machine.
 */
function measured(users: number): Slices {
  const slices: Slices = { growth: [], snapshot: [], restore: [], install: [], rules: [], eviction: [] };
  const timed = <T>(kind: keyof Slices, work: () => T): T => {
    const begun = process.cpuUsage();
    const result = work();
    const { user, system } = process.cpuUsage(begun);
    slices[kind].push((user + system) / 1_000);
    return result;
  };
  const harness = new Harness();
  const rule = { id: 'a', limit: 10, windowMillis: HOUR_MILLIS, clock: 'cluster' } as const;
  harness.rules(tableOf(1, [rule]));
  for (let i = 0; i < users; i += USERS_PER_ENTRY) {
    const requests = Array.from({ length: USERS_PER_ENTRY }, (_, k) => ({ userId: `user-${i + k}` }));
    timed('growth', () => harness.ask(...requests));
  }
  const { machine } = harness;
  const snapshot = timed('snapshot', () => machine.snapshot());
  const restore = timed('restore', () => machine.restore());
  for (;;) {
    const chunk = timed('snapshot', () => snapshot.next());
    if (chunk === undefined) break;
    timed('restore', () => restore.add(chunk));
  }
  timed('restore', () => restore.complete());
  timed('install', () => restore.install());
  expect(machine.stats().keys).toBe(users);
  timed('rules', () => harness.rules(tableOf(2, [{ ...rule, limit: 20 }, { id: 'b' }])));
  harness.nowMillis = START + 2 * HOUR_MILLIS;
  while (machine.stats().keys > 0) timed('eviction', () => machine.apply({ type: 'sweep' }, harness.next()));
  return slices;
}

/** The collector may interrupt any of the pieces, so a few outliers are allowed. */
function usual(slices: number[]): number {
  return slices.toSorted((a, b) => a - b)[Math.floor((slices.length - 1) * 0.9)] ?? 0;
}

describe('blocking work', () => {
  it('does not grow with the number of users: snapshot, restore, install, eviction, rule change', () => {
    measured(FEW);
    const few = measured(FEW);
    let many = measured(MANY);
    const growing = new Set(KINDS);
    for (let life = 1; ; life += 1) {
      for (const kind of growing)
        if (usual(many[kind]) < usual(few[kind]) * 4 + NOISE_MILLIS) growing.delete(kind);
      if (growing.size === 0 || life === LIVES_MAX) break;
      console.log(`slow, or a wrong measurement: ${[...growing].join(', ')}; measured again`);
      many = measured(MANY);
    }
    expect([...growing], 'takes longer with 16 times as many users').toEqual([]);
    expect(many.snapshot.length).toBeGreaterThan(few.snapshot.length * 2);
    expect(many.restore.length).toBeGreaterThan(few.restore.length * 2);
  });
});
