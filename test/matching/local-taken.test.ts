/** Tests that a request gives its cost back to local fractions if it is not let through. */
import { describe, expect, it } from 'vitest';

import { Bench, DENIED, degraded, GONE, GRANTED, LOST, undecided, WAIT } from './fail-modes-bench.ts';

describe('a request whose limits are in two partitions', () => {
  it.each([
    ['denied by another limit', DENIED, undefined],
    ['held back by the fraction of another limit', GONE, WAIT],
    ['refused, because a closed limit may have granted it', LOST, undefined],
    ['invalid', { kind: 'invalid', field: 'cost', message: 'cost is too much' } as const, undefined],
  ])('leaves the fraction of this node unchanged if it is %s', (_, first, wait) => {
    const bench = new Bench({ a: wait === undefined ? 'closed' : 'local', b: 'local' });
    if (wait !== undefined) bench.waits.set('a', wait);
    bench.ask({ requestId: 'r1' });
    bench.answer('b', GONE);
    expect(bench.taken).toEqual([['b']]);
    bench.answer('a', first);
    expect(bench.reported).toHaveLength(1);
    expect(bench.taken).toEqual([]);
  });

  it('is charged once to the fraction of this node, even if it is repeated because rules change', () => {
    const bench = new Bench({ a: 'closed', b: 'local' });
    bench.ask();
    bench.answer('b', GONE);
    bench.answer('a', undecided('rules_changed'));
    expect(bench.taken).toEqual([]);
    bench.requests.tick();
    bench.answer('b', GONE);
    bench.answer('a', GRANTED);
    expect(bench.reported.map(({ answer }) => answer)).toEqual([degraded(true, 'b')]);
    expect(bench.taken).toEqual([['b']]);
  });
});
