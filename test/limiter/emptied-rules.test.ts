/**
 * Rules that are added and removed: the memory of them is bounded, is the same on all replicas, and prevents a double
 * grant.
 */
import { describe, expect, it } from 'vitest';
import type { Rule } from '../../src/api/rule.ts';
import { EMPTIED_RULES_MAX } from '../../src/limiter/state/rule-change.ts';
import { LATE_MILLIS } from '../../src/limiter/state/lost-history.ts';
import { Harness, restoreInto, snapshotOf, START, tableOf } from './harness.ts';

const STAYS = { id: 'stays', limit: 1_000_000, windowMillis: 10 };
const WINDOW_MILLIS = 1_000;
/** The rule that grants before all others, so it is forgotten first. */
const FIRST = { id: 'first', limit: 1, windowMillis: WINDOW_MILLIS };

function others(count: number): Partial<Rule>[] {
  return Array.from({ length: count }, (_, i) => ({ id: `other${i}`, limit: 1, windowMillis: 10 }));
}

function sweep(harness: Harness): void {
  for (let i = 0; i < 4; i += 1) harness.machine.apply({ type: 'sweep' }, harness.next());
}

/**
 * `FIRST` and then each of the others grants once. Afterwards only `STAYS` is in force, and all of their grants are
 * forgotten.
 */
function emptied(first: Partial<Rule> = FIRST, count = EMPTIED_RULES_MAX): Harness {
  const harness = new Harness();
  harness.rules(tableOf(1, [STAYS, first, ...others(count)]));
  harness.one({ userId: 'ada', ruleId: 'first', timestampMillis: START, requestId: 'id' });
  harness.nowMillis += WINDOW_MILLIS;
  harness.ask(...others(count).map(({ id }) => ({ userId: 'ada', ruleId: id })));
  harness.rules(tableOf(2, [STAYS]));
  harness.nowMillis += LATE_MILLIS + WINDOW_MILLIS;
  sweep(harness);
  return harness;
}

function knownRules({ machine }: Harness): string[] {
  return [...machine.inspect()].flatMap((item) => (item.kind === 'rule' ? [item.rule.id] : []));
}

/** Table `i` has a hundred rules of its own. Each grants once. */
function renameRules(harness: Harness, i: number): void {
  harness.nowMillis += 1_000;
  const some = others(100).map(({ id }) => ({ id: `${id}-${i}`, limit: 1, windowMillis: 10 }));
  harness.rules(tableOf(i, [STAYS, ...some]));
  harness.ask(...some.map(({ id }) => ({ userId: 'ada', ruleId: id })));
  harness.machine.apply({ type: 'sweep' }, harness.next());
}

describe('removed rules', () => {
  it(`are remembered no longer than their keys, except for ${EMPTIED_RULES_MAX} of them`, () => {
    const harness = emptied(FIRST, 2 * EMPTIED_RULES_MAX);
    const known = knownRules(harness);
    expect(known).toHaveLength(1 + EMPTIED_RULES_MAX);
    expect(known).toContain('stays');
    expect(known).not.toContain('first');
  });

  it('are bounded in number also if all their keys were forgotten before the removal', () => {
    const harness = new Harness();
    harness.rules(tableOf(1, [STAYS, ...others(2 * EMPTIED_RULES_MAX)]));
    harness.ask(...others(2 * EMPTIED_RULES_MAX).map(({ id }) => ({ userId: 'ada', ruleId: id })));
    harness.nowMillis += 1_000;
    sweep(harness);
    expect(knownRules(harness)).toHaveLength(1 + 2 * EMPTIED_RULES_MAX);
    harness.rules(tableOf(2, [STAYS]));
    expect(knownRules(harness)).toHaveLength(1 + EMPTIED_RULES_MAX);
  });

  it('grant nothing a second time when they come back, remembered or not', () => {
    const harness = emptied();
    expect(knownRules(harness)).not.toContain('first');
    harness.rules(tableOf(3, [STAYS, FIRST]));
    const asks = (timestampMillis: number) =>
      harness.one({ userId: 'ada', ruleId: 'first', timestampMillis }).allowed;
    // All of these would be within a window of an earlier grant.
    expect([START - WINDOW_MILLIS + 1, START, START + WINDOW_MILLIS - 1].map(asks)).toEqual([
      false,
      false,
      false,
    ]);
    expect(asks(harness.nowMillis - LATE_MILLIS)).toBe(true);
  });

  it('keep to the limit when they come back with a longer window', () => {
    const day = { ...FIRST, meter: 'fixedWindow', windowMillis: 86_400_000 } as const;
    const harness = emptied({ ...FIRST, meter: 'fixedWindow' });
    harness.rules(tableOf(3, [STAYS, day]));
    const asks = () => harness.one({ userId: 'ada', ruleId: 'first' }).allowed;
    expect(asks()).toBe(true);
    harness.one({ ask: 'refund', userId: 'ada', requestId: 'id' });
    expect(asks()).toBe(false);
  });

  it('are remembered while any of their grants counts, under any meter', () => {
    const long = { ...FIRST, windowMillis: 86_400_000 };
    const harness = emptied(long);
    expect(knownRules(harness)).toContain('first');
    harness.rules(tableOf(3, [STAYS, long]));
    expect(harness.one({ userId: 'ada', ruleId: 'first' }).allowed).toBe(false);
  });

  it('are the same on a replica that began with a snapshot, before or after', () => {
    const whole = new Harness();
    const replicas = [whole];
    for (let i = 1; i <= 5; i += 1) {
      for (const replica of replicas) renameRules(replica, i);
      const restored = new Harness();
      restoreInto(restored.machine, snapshotOf(whole.machine));
      [restored.index, restored.nowMillis] = [whole.index, whole.nowMillis];
      replicas.push(restored);
    }
    const snapshots = replicas.map(({ machine }) => snapshotOf(machine));
    for (const snapshot of snapshots) expect(snapshot).toEqual(snapshots[0]);
    expect(knownRules(whole).length).toBeLessThanOrEqual(1 + 100 + EMPTIED_RULES_MAX);
    expect(knownRules(whole)).not.toContain('other0-1');
  });
});
