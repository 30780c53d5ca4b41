/** Tests when a node refuses requests: before it is loaded, while it is drained, and when it is excluded. */
import { describe, expect, it } from 'vitest';
import type { NodeCore } from '../../src/node/node-core.ts';
import type { NodeReadiness } from '../../src/node/readiness.ts';
import { takenRequests } from '../../src/node/node-api.ts';

const CALLS = ['ask', 'allowListed', 'peek', 'refund', 'operate', 'customer'] as const;

/** A node in the given state that records the requests it gets. */
function nodeThat(is: { readonly isDraining?: boolean; readonly isExcluded?: boolean } | 'loading') {
  const handedOn: string[] = [];
  const note = (what: string) => (): void => void handedOn.push(what);
  const core =
    is === 'loading'
      ? undefined
      : {
          isExcluded: is.isExcluded ?? false,
          ask: note('operate'),
          requests: {
            ask: note('ask'),
            askListed: note('allowListed'),
            peeks: { ask: note('peek') },
            refund: note('refund'),
            customers: { ask: note('customer') },
          },
        };
  const readiness = {
    core: core as unknown as NodeCore,
    isDraining: is !== 'loading' && is.isDraining === true,
  };
  const requests = takenRequests(readiness as unknown as NodeReadiness);
  const reported: unknown[] = [];
  for (const call of CALLS) {
    const done = (answer: unknown): void => void reported.push(answer);
    if (call === 'customer') requests.customer('acme', { type: 'read' }, done);
    else (requests[call] as (request: unknown, done: (answer: unknown) => void) => void)({}, done);
  }
  return { handedOn, reported };
}

describe('a node', () => {
  it('passes each request on while it serves', () => {
    const { handedOn, reported } = nodeThat({});
    expect(handedOn).toEqual(CALLS);
    expect(reported).toEqual([]);
  });

  it.each([
    ['starting', 'loading'],
    ['draining', { isDraining: true }],
    ['not_member', { isExcluded: true }],
    ['not_member', { isExcluded: true, isDraining: true }],
  ] as const)('refuses each request as %s when it is %j, and asks no partition', (reason, is) => {
    const { handedOn, reported } = nodeThat(is);
    expect(handedOn).toEqual([]);
    expect(reported).toEqual(CALLS.map(() => ({ kind: 'unavailable', reason, proposed: false })));
  });
});
