/** A process is short of memory if it stays above a bound or is close to the maximum, until enough is free again. */
import { describe, expect, it } from 'vitest';
import { AddressCounts } from '../../src/shedding/address-counts.ts';
import { HeapBound } from '../../src/shedding/heap-bound.ts';

function peeksOf(...loads: number[]): boolean[] {
  const bound = new HeapBound();
  return loads.map((load) => {
    bound.check(load);
    return bound.isShort;
  });
}

describe('a process', () => {
  it('is short of memory when three measurements in a row find most of it in use', () => {
    expect(peeksOf(0.86, 0.9, 0.5, 0.86, 0.86, 0.86)).toEqual([false, false, false, false, false, true]);
  });

  it('is short of memory at once when there is hardly any left', () => {
    expect(peeksOf(0.5, 0.96)).toEqual([false, true]);
  });

  it('stops being short of memory only well below the bound', () => {
    expect(peeksOf(0.96, 0.84, 0.8, 0.76, 0.74, 0.84)).toEqual([true, true, true, true, false, false]);
  });

  it('reports only changes', () => {
    const bound = new HeapBound();
    expect([0.5, 0.96, 0.96, 0.5, 0.5].map((load) => bound.check(load))).toEqual([
      false,
      true,
      false,
      true,
      false,
    ]);
  });
});

describe('connections of one address', () => {
  it('are counted until they end', () => {
    const counts = new AddressCounts(2);
    expect([1, 2, 3].map(() => counts.maybeEnter('a'))).toEqual([true, true, false]);
    expect(counts.maybeEnter('b')).toBe(true);
    counts.left('a');
    expect(counts.maybeEnter('a')).toBe(true);
    expect(counts.maybeEnter('a')).toBe(false);
  });
});
