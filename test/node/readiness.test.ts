/** Tests the readiness of a node. */
import { expect, it } from 'vitest';
import { readinessOf } from '../../src/node/readiness.ts';

it('a founder that knows nothing yet waits for leaders, and only others wait to be added', () => {
  expect(readinessOf({ state: 'waiting' }, true)).toEqual({ status: 'waiting for leaders' });
  expect(readinessOf({ state: 'waiting' }, false)).toEqual({ status: 'waiting to be added' });
  const removed = { state: 'removed', reason: 'node 1 was removed' } as const;
  expect(readinessOf(removed, true)).toEqual({ status: 'removed', reason: 'node 1 was removed' });
});
