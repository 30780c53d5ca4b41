/** How long one piece of work on a state takes must not depend on how many users there are. `bench:stalls` has numbers. */
import { describe, expect, it } from 'vitest';
import { Harness, START, tableOf } from './harness.ts';

const FEW = 5_000;
const MANY = 80_000;
const USERS_PER_ENTRY = 100;
const HOUR_MILLIS = 3_600_000;
/** What the collector adds, in whichever of them it works. */
const NOISE_MILLIS = 10;
/** The collector's threads work beside a slice for as long as others keep it from its end, so a busy machine is looked at again. */
const LIVES_MAX = 4;

const KINDS = ['growth', 'snapshot', 'restore', 'install', 'rules', 'eviction'] as const;

type Slices = Record<(typeof KINDS)[number], number[]>;

/**
 * What each piece of work took of the processor, in milliseconds, from no users to `users` and back: how long it took
 * depends on what else the machine has to do.
 */
function lifeOf(users: number): Slices {
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

/** The collector may stop any of them. What all but a few take is their own. */
function usual(slices: number[]): number {
  return slices.toSorted((a, b) => a - b)[Math.floor((slices.length - 1) * 0.9)] ?? 0;
}

describe('blocking work', () => {
  it('does not grow with the number of users: snapshot, restore, install, eviction, rule change', () => {
    lifeOf(FEW);
    const few = lifeOf(FEW);
    let many = lifeOf(MANY);
    const growing = new Set(KINDS);
    for (let life = 1; ; life += 1) {
      for (const kind of growing)
        if (usual(many[kind]) < usual(few[kind]) * 4 + NOISE_MILLIS) growing.delete(kind);
      if (growing.size === 0 || life === LIVES_MAX) break;
      console.log(`slow, or wrong: ${[...growing].join(', ')}; looked at again`);
      many = lifeOf(MANY);
    }
    expect([...growing], 'takes longer with 16 times as many users').toEqual([]);
    expect(many.snapshot.length).toBeGreaterThan(few.snapshot.length * 2);
    expect(many.restore.length).toBeGreaterThan(few.restore.length * 2);
  });
});
