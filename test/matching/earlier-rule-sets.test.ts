/** Tests how long a node also asks the keys of earlier rules. */
import { describe, expect, it } from 'vitest';
import { EarlierRuleSets } from '../../src/matching/earlier-rule-sets.ts';
import { matchingForm } from '../../src/rules/matching-form.ts';
import { readRules } from '../../src/rules/read-rules.ts';

const HORIZON_MILLIS = 120_000;

function before(key: string, horizonMillis = HORIZON_MILLIS): { definitions: string; horizonMillis: number } {
  const read = readRules(`rules: [{ id: one, key: ${key}, windows: { limit: 1, per: hour } }]`);
  if (read.kind !== 'rules') throw new Error(JSON.stringify(read));
  return { definitions: matchingForm(read.definitions), horizonMillis };
}

describe('earlier rules', () => {
  it('are kept for two horizons, because a partition may use them for one horizon longer than this node', () => {
    let now = 1_000;
    const ruleSets = new EarlierRuleSets(() => now);
    expect(ruleSets.of()).toEqual([]);
    const known = [before('user'), before('ip', 1_000)];
    expect(ruleSets.of(known)).toHaveLength(2);
    now += 2_000;
    expect(ruleSets.of(known)).toHaveLength(1);
    now += 2 * HORIZON_MILLIS - 2_001;
    expect(ruleSets.of(known)).toHaveLength(1);
    now += 1;
    expect(ruleSets.of(known)).toEqual([]);
  });

  it('keep their age if group 0 repeats the list, and get a new age if further rules were replaced', () => {
    let now = 1_000;
    const ruleSets = new EarlierRuleSets(() => now);
    const reported = (): number => ruleSets.of([before('user')]).length;
    expect(reported()).toBe(1);
    now += 2 * HORIZON_MILLIS;
    expect(reported()).toBe(0);
    expect(ruleSets.of([before('ip'), before('user')])).toHaveLength(2);
  });
});
