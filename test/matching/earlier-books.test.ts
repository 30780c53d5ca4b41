/** Tests how long a node asks by earlier rules. */
import { describe, expect, it } from 'vitest';
import { EarlierBooks } from '../../src/matching/earlier-books.ts';
import { matchingForm } from '../../src/rules/matching-form.ts';
import { readRules } from '../../src/rules/read-rules.ts';

const HORIZON_MILLIS = 120_000;

function before(key: string, horizonMillis = HORIZON_MILLIS): { definitions: string; horizonMillis: number } {
  const read = readRules(`rules: [{ id: one, key: ${key}, windows: { limit: 1, per: hour } }]`);
  if (read.kind !== 'rules') throw new Error(JSON.stringify(read));
  return { definitions: matchingForm(read.definitions), horizonMillis };
}

describe('rules of before', () => {
  it('are asked for two horizons, as a partition may use them for one horizon longer than this node', () => {
    let now = 1_000;
    const books = new EarlierBooks(() => now);
    expect(books.of()).toEqual([]);
    const known = [before('user'), before('ip', 1_000)];
    expect(books.of(known)).toHaveLength(2);
    now += 2_000;
    expect(books.of(known)).toHaveLength(1);
    now += 2 * HORIZON_MILLIS - 2_001;
    expect(books.of(known)).toHaveLength(1);
    now += 1;
    expect(books.of(known)).toEqual([]);
  });

  it('keep their age if group 0 repeats the list, and start anew if further rules were replaced', () => {
    let now = 1_000;
    const books = new EarlierBooks(() => now);
    const told = (): number => books.of([before('user')]).length;
    expect(told()).toBe(1);
    now += 2 * HORIZON_MILLIS;
    expect(told()).toBe(0);
    expect(books.of([before('ip'), before('user')])).toHaveLength(2);
  });
});
