/** Tests that a request without a limit is let through only if the rules of this node are in force. */
import { beforeEach, describe, expect, it } from 'vitest';
import { Bench, ruleSetOf, GONE, statusBy } from './bench.ts';

const FREE = { tenant: 'acme' };
const UNLIMITED = { kind: 'unlimited', rulesVersion: 7 };
const CHANGED = { kind: 'unavailable', reason: 'rules_changed', proposed: false };
const DOCUMENT = 'rules: [{ id: user, key: user, windows: { limit: 2, per: minute } }]';
const OPEN = 'rules: [{ id: user, key: user, windows: { limit: 2, per: minute }, failMode: open }]';

let bench: Bench;

function reported(): unknown[] {
  return bench.reported.map(({ answer }) => answer);
}

beforeEach(() => {
  bench = new Bench();
  bench.ruleSet = ruleSetOf(7, DOCUMENT);
});

describe('a request that no rule of this node limits', () => {
  it.each([6, 7])('is let through if a leader has the rules of version %i', (version) => {
    bench.inForce = statusBy(version);
    bench.ask(FREE);
    expect(reported()).toEqual([UNLIMITED]);
  });

  it('waits for the rules in force if they are newer, and is decided by them', () => {
    bench.inForce = statusBy(8);
    bench.ask(FREE);
    bench.requests.tick();
    expect(reported()).toEqual([]);
    bench.ruleSet = ruleSetOf(8, 'rules: [{ id: tenant, key: tenant, windows: { limit: 2, per: minute } }]');
    bench.requests.tick();
    expect(bench.asked.map(({ request }) => request)).toMatchObject([
      { userId: 'tenant=acme', ruleId: 'tenant/minute', matchedBy: 8 },
    ]);
  });

  it('is refused if this node does not get them in time', () => {
    bench.inForce = statusBy(8);
    bench.ask(FREE);
    bench.now += 500;
    bench.requests.tick();
    expect(reported()).toEqual([CHANGED]);
  });

  it('is unavailable if no partition answers, unless the fail modes of all rules are open', () => {
    bench.inForce = GONE;
    bench.ask(FREE);
    bench.ruleSet = ruleSetOf(7, OPEN);
    bench.ask(FREE);
    bench.inForce = { ...GONE, reason: 'not_member' };
    bench.ask(FREE);
    expect(reported()).toEqual([GONE, UNLIMITED, { ...GONE, reason: 'not_member' }]);
  });

  it('is not let through by an answer from before it came', () => {
    bench.ask(FREE);
    bench.inForce = statusBy(8);
    bench.ask(FREE);
    expect(reported()).toEqual([UNLIMITED]);
  });

  it('is confirmed with other requests by one partition, or by another if that does not answer', () => {
    bench.ask(FREE);
    bench.ask(FREE);
    bench.inForce = GONE;
    bench.ask(FREE);
    bench.ask(FREE);
    expect(bench.confirmations.map(({ userId }) => userId)).toEqual(['0', '0', '0', '1']);
  });
});
