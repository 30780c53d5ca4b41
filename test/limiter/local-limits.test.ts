/**
 * The limits that a node enforces alone: never more than its fraction in any rolling window, in bounded memory, by its
 * own clock.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { WINDOW_MILLIS_MAX } from '../../src/api/rule.ts';
import type { MatchedLimit } from '../../src/matching/matched-limit.ts';
import { RuleSet } from '../../src/matching/rule-set.ts';
import { LOCAL_KEYS_MAX, LocalLimits } from '../../src/limiter/local-limits.ts';
import { localLimitsOf } from '../../src/node/routing.ts';
import { METERS } from '../../src/rules/rule-definition.ts';
import { readRules } from '../../src/rules/read-rules.ts';

/** The limits of one request under a document with one rule. */
function limitsOf(rule: string, user = 'ada', cost = 1): readonly MatchedLimit[] {
  const read = readRules(`rules: [{ id: a, key: user, failMode: local, ${rule} }]`);
  if (read.kind !== 'rules') throw new Error(JSON.stringify(read));
  const ruleSet = new RuleSet(1, read.definitions);
  const matched = ruleSet.limitsFor({ descriptors: new Map([['user', user]]), cost });
  if (matched.kind !== 'limits') throw new Error(matched.message);
  return matched.enforced;
}

class Node {
  now = 0;
  nodes = 3;
  readonly fractions = new LocalLimits();

  take(limits: readonly MatchedLimit[]): number {
    return this.fractions.take(localLimitsOf(limits, this.nodes), this.now);
  }

  giveBack(limits: readonly MatchedLimit[], takenAt: number): void {
    this.fractions.giveBack(localLimitsOf(limits, this.nodes), takenAt);
  }

  /** How many of `count` requests are granted now. */
  granted(limits: readonly MatchedLimit[], requests: number): number {
    return Array.from({ length: requests }, () => this.take(limits)).filter((wait) => wait === 0).length;
  }
}

const MINUTE = limitsOf('windows: { limit: 10, per: minute }');

/** The limits of this many users. */
function keys(count: number, from = 0): (readonly MatchedLimit[])[] {
  return Array.from({ length: count }, (_, i) => [{ ...MINUTE[0]!, userId: `user=${from + i}` }]);
}

describe('the fraction of a limit that a node enforces', () => {
  it.each(METERS)('is the limit divided by the number of nodes, rounded down, for the meter %s', (meter) => {
    const node = new Node();
    const burst = meter.endsWith('Bucket') ? ', burst: 100' : '';
    expect(node.granted(limitsOf(`windows: { limit: 11, per: minute }, meter: ${meter}${burst}`), 50)).toBe(
      3,
    );
  });

  it('may be 0: then the wait is a window', () => {
    const node = new Node();
    const wait = node.take(limitsOf('windows: { limit: 2, per: minute }'));
    expect(wait).toBeGreaterThanOrEqual(60_000);
    expect(node.take(limitsOf('windows: { limit: 100, per: minute }', 'ada', 34))).toBeGreaterThan(0);
    expect(node.fractions.size).toBe(0);
  });

  it('counts costs', () => {
    const node = new Node();
    const expensive = limitsOf('windows: { limit: 10, per: minute }', 'ada', 2);
    expect([node.granted(expensive, 9), node.granted(MINUTE, 9)]).toEqual([1, 1]);
  });

  it('is charged under all windows or none', () => {
    const node = new Node();
    const both = limitsOf('windows: [{ limit: 30, per: minute }, { limit: 6, per: hour }]');
    const short = limitsOf('windows: { limit: 30, per: minute }');
    expect(node.granted(both, 20)).toBe(2);
    // The hour denied 18 of them; the minute was not charged for those.
    expect(node.granted(short, 20)).toBe(8);
  });

  it('never grants more in a rolling window, and grants again after the reported wait', () => {
    const limit = fc.integer({ min: 1, max: 40 });
    const pauses = fc.array(fc.double({ min: 0, max: 500, noNaN: true }), { maxLength: 120 });
    fc.assert(
      fc.property(limit, pauses, fc.integer({ min: 1, max: 700 }), (limit, pauses, windowMillis) => {
        const node = new Node();
        const [wanted] = MINUTE;
        const limits = [{ ...wanted!, window: { limit, windowMillis } }];
        const grantedAt: number[] = [];
        const afterWaiting: number[] = [];
        for (const pause of pauses) {
          node.now += pause;
          const wait = node.take(limits);
          if (wait === 0) grantedAt.push(node.now);
          else if (limit >= 3) {
            node.now += wait;
            afterWaiting.push(node.take(limits));
            grantedAt.push(node.now);
          }
        }
        expect(afterWaiting.filter((wait) => wait > 0)).toEqual([]);
        for (const end of grantedAt) {
          const within = grantedAt.filter((at) => at > end - windowMillis && at <= end);
          expect(within.length).toBeLessThanOrEqual(Math.floor(limit / 3));
        }
      }),
    );
  });

  it('is complete again after all grants were given back', () => {
    const node = new Node();
    expect(node.granted(MINUTE, 9)).toBe(3);
    node.now = 10_000;
    node.giveBack(MINUTE, 0);
    expect(node.granted(MINUTE, 9)).toBe(1);
    for (const takenAt of [0, 0, 10_000]) node.giveBack(MINUTE, takenAt);
    expect(node.fractions.size).toBe(0);
    expect(node.granted(MINUTE, 9)).toBe(3);
  });

  it('is never exceeded in a rolling window by grants that are not given back', () => {
    const steps = fc.array(
      fc.record({ pause: fc.double({ min: 0, max: 300, noNaN: true }), backAfter: fc.option(fc.nat(900)) }),
      { maxLength: 120 },
    );
    fc.assert(
      fc.property(fc.integer({ min: 3, max: 40 }), steps, (limit, steps) => {
        const node = new Node();
        const limits = [{ ...MINUTE[0]!, window: { limit, windowMillis: 500 } }];
        const kept: number[] = [];
        let open: { readonly takenAt: number; readonly dueAt: number }[] = [];
        for (const { pause, backAfter } of steps) {
          node.now += pause;
          for (const one of open) if (one.dueAt <= node.now) node.giveBack(limits, one.takenAt);
          open = open.filter(({ dueAt }) => dueAt > node.now);
          if (node.take(limits) > 0) continue;
          if (backAfter === null) kept.push(node.now);
          else open.push({ takenAt: node.now, dueAt: node.now + backAfter });
        }
        for (const end of kept) {
          const within = kept.filter((at) => at > end - 500 && at <= end);
          expect(within.length).toBeLessThanOrEqual(Math.floor(limit / 3));
        }
      }),
    );
  });

  it('holds for windows of a month', () => {
    const node = new Node();
    const limits = [{ ...MINUTE[0]!, window: { limit: 6, windowMillis: WINDOW_MILLIS_MAX } }];
    expect(node.granted(limits, 9)).toBe(2);
    node.now = WINDOW_MILLIS_MAX - 1;
    expect(node.granted(limits, 1)).toBe(0);
    node.now = WINDOW_MILLIS_MAX;
    expect(node.granted(limits, 9)).toBe(2);
  });

  it('follows the number of nodes', () => {
    const node = new Node();
    node.nodes = 1;
    expect(node.granted(MINUTE, 20)).toBe(10);
  });
});

describe('the keys of a node', () => {
  it('have a limit each, and are bounded in number: one more is denied while all are in use', () => {
    const node = new Node();
    const [hot, ...others] = keys(LOCAL_KEYS_MAX);
    expect(node.granted(hot!, 9)).toBe(3);
    for (const other of others) expect(node.granted(other, 3)).toBe(3);
    const [more] = keys(1, LOCAL_KEYS_MAX);
    expect(node.take(more!)).toBe(60_000);
    expect(node.fractions.size).toBe(LOCAL_KEYS_MAX);
    node.now = 59_999;
    expect([node.granted(hot!, 1), node.granted(more!, 1)]).toEqual([0, 0]);
  });

  it('are replaced by others when they are idle', () => {
    const node = new Node();
    for (const each of keys(LOCAL_KEYS_MAX)) node.take(each);
    node.now = 30_000;
    const [busy] = keys(1);
    node.take(busy!);
    node.now = 60_000;
    const [fresh] = keys(1, LOCAL_KEYS_MAX);
    expect(node.granted(fresh!, 9)).toBe(3);
    expect(node.fractions.size).toBe(2);
    expect(node.granted(busy!, 9)).toBe(2);
  });

  it('are replaced by others again and again, also if all were idle before', () => {
    const node = new Node();
    for (const each of keys(LOCAL_KEYS_MAX)) node.take(each);
    node.now = 60_000;
    for (const each of keys(LOCAL_KEYS_MAX, LOCAL_KEYS_MAX)) node.take(each);
    node.now = 120_000;
    const [fresh] = keys(1, 2 * LOCAL_KEYS_MAX);
    expect(node.granted(fresh!, 9)).toBe(3);
    expect(node.fractions.size).toBe(1);
  });

  it('are counted together over all rules', () => {
    const node = new Node();
    for (const each of keys(LOCAL_KEYS_MAX)) node.take(each);
    const other = [{ ...MINUTE[0]!, ruleId: 'b' }];
    expect(node.granted(other, 9)).toBe(0);
    expect(node.fractions.size).toBe(LOCAL_KEYS_MAX);
  });
});

function take(fractions: LocalLimits, cost: number, now: number): number {
  return fractions.take([{ name: 'ada', limit: 3, windowMillis: 1_000, cost }], now);
}

describe('the window of a node', () => {
  it('counts costs, and reports when a cost is free again', () => {
    const fractions = new LocalLimits();
    expect([take(fractions, 2, 0), take(fractions, 1, 400)]).toEqual([0, 0]);
    expect([1, 3, 4].map((cost) => take(fractions, cost, 500))).toEqual([500, 900, 1_000]);
    expect(take(fractions, 2, 1_000)).toBe(0);
  });

  it('is granted to the last unit, for any number of grants', () => {
    const fractions = new LocalLimits();
    const large = { name: 'ada', limit: 100_000, windowMillis: 1_000, cost: 1 };
    let granted = 0;
    for (let i = 0; i < 101_000; i += 1) if (fractions.take([large], i / 1_000) === 0) granted += 1;
    expect(granted).toBe(100_000);
  });
});
