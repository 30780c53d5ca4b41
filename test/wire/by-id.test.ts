/** Compares the ring of items by id with a Map. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ById } from '../../src/wire/by-id.ts';

const FIRST_ID = 2 ** 47 - 1;

describe('items under ids', () => {
  it('behave as in a Map, in the order of their ids', () => {
    const step = fc.oneof(
      fc.record({ add: fc.integer({ min: 1, max: 90 }) }),
      // Mostly an old id, and sometimes an unknown one.
      fc.record({ delete: fc.integer({ min: -3, max: 200 }) }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const things = new ById<string>(FIRST_ID);
        const expected = new Map<number, string>();
        let next = FIRST_ID;
        for (const each of steps) {
          const [added, deleted] = 'add' in each ? [each.add, -10] : [0, each.delete];
          for (let i = 0; i < added; i += 1, next += 1) {
            things.add(`thing ${things.nextId}`);
            expected.set(next, `thing ${next}`);
          }
          expect(things.delete(FIRST_ID + deleted)).toBe(expected.delete(FIRST_ID + deleted));
          expect(things.size).toBe(expected.size);
          expect(things.first).toBe(expected.values().next().value);
        }
        expect(things.values).toEqual([...expected.values()]);
        for (let id = FIRST_ID - 2; id < next + 2; id += 1) expect(things.get(id)).toBe(expected.get(id));
      }),
    );
  });

  it('that stay for long are kept while others are added and removed', () => {
    const things = new ById<number>(7);
    things.add(7);
    for (let id = 8; id < 100_000; id += 1) {
      things.add(id);
      expect(things.delete(id)).toBe(true);
    }
    expect([things.size, things.get(7), things.nextId]).toEqual([1, 7, 100_000]);
    expect(things.delete(7)).toBe(true);
    expect([things.size, things.first]).toEqual([0, undefined]);
  });
});
