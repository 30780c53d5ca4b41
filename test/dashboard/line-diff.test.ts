/** Tests the line difference of two texts, and applying the change of another admin to a third. */
import { describe, expect, it } from 'vitest';
import { carriedOver, lineDiff } from '../../src/dashboard/line-diff.ts';

const BEFORE = 'a\nb\nc\nd\ne\nf\ng\nh\n';

describe('two texts', () => {
  it('differ in lines, each with its number and the lines around it', () => {
    expect(lineDiff(BEFORE, BEFORE.replace('e', 'E'))).toEqual([
      { kind: 'skipped', line: 0, text: '' },
      { kind: 'same', line: 3, text: 'c' },
      { kind: 'same', line: 4, text: 'd' },
      { kind: 'removed', line: 5, text: 'e' },
      { kind: 'added', line: 5, text: 'E' },
      { kind: 'same', line: 6, text: 'f' },
      { kind: 'same', line: 7, text: 'g' },
    ]);
  });

  it('that are equal have no difference', () => {
    expect(lineDiff(BEFORE, BEFORE)).toEqual([]);
  });

  it('that differ in a thousand lines are not compared', () => {
    expect(lineDiff('a\n'.repeat(3_000), 'b\n'.repeat(3_000))).toBeUndefined();
  });
});

describe('a change of another admin', () => {
  it('is merged with my change', () => {
    const theirs = BEFORE.replace('b', 'B');
    const mine = BEFORE.replace('g', 'g\ngg');
    expect(carriedOver({ before: BEFORE, theirs, mine })).toBe('a\nB\nc\nd\ne\nf\ng\ngg\nh\n');
  });

  it('is not merged if my change touches the same lines', () => {
    const [theirs, mine] = [BEFORE.replace('b', 'B'), BEFORE.replace('b', 'x')];
    expect(carriedOver({ before: BEFORE, theirs, mine })).toBeUndefined();
  });
});
