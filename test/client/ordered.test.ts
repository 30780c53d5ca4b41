/** Tests that the first item is right after any additions and removals. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Ordered } from '../../src/client/ordered.ts';

describe('an ordered collection', () => {
  it('has the same first item as a sorted list, after any additions and removals', () => {
    const change = fc.record({ isAdded: fc.boolean(), value: fc.nat(30), which: fc.nat(50) });
    fc.assert(
      fc.property(fc.array(change, { maxLength: 200 }), (changes) => {
        const ordered = new Ordered<{ value: number }>((a, b) => a.value < b.value);
        const list: { value: number }[] = [];
        for (const { isAdded, value, which } of changes) {
          if (isAdded || list.length === 0) {
            const item = { value };
            list.push(item);
            ordered.add(item);
          } else ordered.delete(list.splice(which % list.length, 1)[0] ?? { value });
          expect(ordered.first?.value).toBe(list.toSorted((a, b) => a.value - b.value)[0]?.value);
        }
      }),
    );
  });

  it('ignores the removal of an item that it does not contain', () => {
    const ordered = new Ordered<number>((a, b) => a < b);
    ordered.delete(1);
    ordered.add(2);
    ordered.delete(1);
    expect(ordered.first).toBe(2);
  });
});
