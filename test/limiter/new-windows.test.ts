/** Grants when windows of a rule are added, removed or changed. */
import { describe, expect, it } from 'vitest';
import type { Rule } from '../../src/api/rule.ts';
import type { Decision } from '../../src/limiter/decision.ts';
import { limiterRulesOf } from '../../src/rules/limiter-rules.ts';
import { readRules } from '../../src/rules/read-rules.ts';
import { Harness, restoreInto, snapshotOf, tableOf } from './harness.ts';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

const DAY_ALONE = '[{limit: 100, per: day}]';
const MINUTE_AND_DAY = '[{limit: 10, per: minute}, {limit: 100, per: day}]';

/** A partition that decides by a sequence of rule documents. */
class Documents extends Harness {
  #version = 0;
  #rules: readonly Rule[] = [];

  constructor(windows: string, more?: string) {
    super();
    this.apply(windows, more);
  }

  apply(
    windows: string,
    more = '',
    options: Parameters<typeof tableOf>[2] = {},
    version = this.#version + 1,
  ): void {
    const read = readRules(`rules: [{id: per-user, key: user, clock: cluster, windows: ${windows}${more}}]`);
    if (read.kind !== 'rules') throw new Error(JSON.stringify(read.mistakes));
    this.#version = version;
    this.#rules = limiterRulesOf(read.definitions);
    this.rules(tableOf(this.#version, [...this.#rules], options));
  }

  /** One request under all windows of the rule. */
  charge(cost = 1, userId = 'ada', requestId?: string): Decision {
    const [first, ...others] = this.#rules.map(({ id }) => ({ userId, ruleId: id, cost }));
    if (first === undefined) throw new Error('no windows');
    const joint = { askedDigest: cost, further: others };
    return this.one({ ...first, requestId, ...(others.length > 0 && joint) });
  }

  /** By window: its remaining cost. */
  left(userId = 'ada'): Record<string, number> {
    const limits = this.machine.peek({ ask: 'peek', userId }, this.nowMillis)?.limits ?? [];
    return Object.fromEntries(limits.map(({ ruleId, remaining }) => [ruleId.split('/')[1], remaining]));
  }

  restart(): void {
    const hash = this.machine.hash();
    restoreInto(this.machine, snapshotOf(this.machine));
    if (this.machine.hash() !== hash) throw new Error('a snapshot restores another state');
  }
}

describe('a document that replaces a table', () => {
  it('starts with the grants of the rule of the same id', () => {
    const cluster = new Documents(DAY_ALONE);
    const rule = { id: 'per-user', limit: 100, windowMillis: 24 * HOUR, clock: 'cluster' } as const;
    cluster.rules(tableOf(2, [rule]));
    cluster.nowMillis += 1;
    expect(cluster.one({ userId: 'eve', ruleId: 'per-user', cost: 60 }).allowed).toBe(true);
    cluster.apply(MINUTE_AND_DAY, '', {}, 3);
    expect(cluster.left('eve')).toEqual({ minute: 0, day: 40 });
  });
});

describe('a rule of 100 a day', () => {
  it('stays one of 100 a day when a window of a minute is added before it', () => {
    const cluster = new Documents(DAY_ALONE);
    for (let i = 0; i < 10; i += 1) expect(cluster.charge(10).allowed).toBe(true);
    cluster.nowMillis += HOUR;
    cluster.apply(MINUTE_AND_DAY);
    expect(cluster.left()).toEqual({ minute: 10, day: 0 });
    expect(cluster.charge()).toMatchObject({ allowed: false, ruleId: 'per-user/day' });
  });

  it('keeps its counts when windows move, and when one is removed', () => {
    const cluster = new Documents(
      '[{limit: 100, per: day}, {limit: 50, per: hour}, {limit: 10, per: minute}]',
    );
    cluster.charge(7);
    cluster.apply('[{limit: 10, per: minute}, {limit: 100, per: day}, {limit: 50, per: hour}]');
    expect(cluster.left()).toEqual({ minute: 3, hour: 43, day: 93 });
    cluster.apply('[{limit: 100, per: day}, {limit: 50, per: hour}]');
    expect(cluster.left()).toEqual({ hour: 43, day: 93 });
    cluster.apply(DAY_ALONE);
    expect(cluster.left()).toEqual({ day: 93 });
  });

  it('keeps the count of a named window whose length changes, beside another one of the same period', () => {
    const cluster = new Documents('[{limit: 100, per: day}, {limit: 50, per: day, name: peak}]');
    cluster.charge(20);
    cluster.apply('[{limit: 50, per: hour, name: peak}, {limit: 100, per: day}]');
    expect(cluster.left()).toEqual({ peak: 30, day: 80 });
  });
});

describe('a new window', () => {
  it('starts with the grants that a longer one knows, to the millisecond', () => {
    const cluster = new Documents(DAY_ALONE);
    cluster.charge(3);
    cluster.nowMillis += 50 * SECOND;
    cluster.charge(5);
    cluster.nowMillis += 5 * SECOND;
    cluster.apply(MINUTE_AND_DAY);
    expect(cluster.left()).toEqual({ minute: 2, day: 92 });
    expect(cluster.charge(3)).toMatchObject({ allowed: false, retryAfterMillis: 5 * SECOND + 1 });
    expect(cluster.charge(1).allowed).toBe(true);
    expect(cluster.left()).toEqual({ minute: 1, day: 91 });
    cluster.nowMillis += 5 * SECOND + 1;
    expect(cluster.left()).toEqual({ minute: 4, day: 91 });
  });

  it('starts with the grants that a shorter one knows, also if the same document removes that one', () => {
    const cluster = new Documents('[{limit: 10, per: minute}]');
    cluster.charge(4);
    cluster.apply('[{limit: 10, per: hour}]');
    expect(cluster.left()).toEqual({ hour: 6 });
    cluster.charge(6);
    cluster.nowMillis += 30 * MINUTE;
    expect(cluster.charge().allowed).toBe(false);
  });

  it('loses nothing and counts nothing twice in a restart, before a grant and after it', () => {
    const cluster = new Documents(DAY_ALONE);
    cluster.charge(3);
    cluster.apply(MINUTE_AND_DAY);
    cluster.restart();
    expect(cluster.left()).toEqual({ minute: 7, day: 97 });
    cluster.charge(2);
    cluster.restart();
    expect(cluster.left()).toEqual({ minute: 5, day: 95 });
  });

  it.each([0, SECOND])(
    'that comes back after %i ms has its own grants, and those made without it',
    (millis) => {
      const cluster = new Documents(MINUTE_AND_DAY);
      cluster.charge(2);
      cluster.apply('[{limit: 10, per: minute}]');
      cluster.charge(5);
      cluster.nowMillis += millis;
      cluster.apply(MINUTE_AND_DAY);
      expect(cluster.left()).toEqual({ minute: 3, day: 93 });
      cluster.charge();
      expect(cluster.left()).toEqual({ minute: 2, day: 92 });
    },
  );

  it('inherits nothing more for a key that it has known since', () => {
    const cluster = new Documents(DAY_ALONE, ', meter: tokenBucket');
    cluster.apply(MINUTE_AND_DAY, ', meter: tokenBucket');
    cluster.charge(10);
    cluster.nowMillis += 10 * MINUTE;
    // The minute has no grants left and forgets the key; the day has some.
    for (let i = 0; i < 8; i += 1) cluster.charge(1, 'bob');
    expect(cluster.left()['minute']).toBe(10);
  });

  it.each(['slidingCounter', 'fixedWindow', 'tokenBucket', 'leakyBucket'])(
    'with the meter %s may deny too much, but never grants too much',
    (meter) => {
      const cluster = new Documents('[{limit: 100, per: day}]', `, meter: ${meter}`);
      cluster.charge(8);
      cluster.apply(MINUTE_AND_DAY, `, meter: ${meter}`);
      expect(cluster.left()).toEqual({ minute: 2, day: 92 });
      expect(cluster.charge(3).allowed).toBe(false);
      expect(cluster.charge(2).allowed).toBe(true);
      expect(cluster.left()).toEqual({ minute: 0, day: 90 });
      cluster.restart();
      expect(cluster.left()).toEqual({ minute: 0, day: 90 });
    },
  );

  it('starts with the grants that former meters know; a change of the meter makes no window new', () => {
    const cluster = new Documents(DAY_ALONE);
    cluster.charge(8);
    cluster.apply(MINUTE_AND_DAY, ', meter: fixedWindow');
    expect(cluster.left()).toEqual({ minute: 2, day: 92 });
    cluster.charge();
    expect(cluster.left()).toEqual({ minute: 1, day: 91 });
    cluster.apply(MINUTE_AND_DAY, ', meter: slidingLog');
    expect(cluster.left()).toEqual({ minute: 1, day: 91 });
  });

  it("counts by a customer's own limit, for the key of the customer only", () => {
    const cluster = new Documents(DAY_ALONE);
    cluster.charge(8);
    cluster.charge(1, 'bob');
    cluster.apply(MINUTE_AND_DAY);
    const action = { type: 'put', overrides: [{ ruleId: 'per-user/minute', limit: 20 }] } as const;
    cluster.say('ada', action);
    expect(cluster.left()).toEqual({ minute: 12, day: 92 });
    expect(cluster.left('bob')).toEqual({ minute: 9, day: 99 });
    expect(cluster.left('eve')).toEqual({ minute: 10, day: 100 });
  });

  it('refunds all of its own grants, and none that it inherited', () => {
    const cluster = new Documents(DAY_ALONE);
    cluster.nowMillis += 1;
    cluster.charge(4, 'ada', 'before');
    cluster.apply(MINUTE_AND_DAY);
    cluster.charge(3, 'ada', 'after');
    cluster.one({ ask: 'refund', userId: 'ada', requestId: 'after' });
    expect(cluster.left()).toEqual({ minute: 6, day: 96 });
    cluster.one({ ask: 'refund', userId: 'ada', requestId: 'before' });
    expect(cluster.left()).toEqual({ minute: 6, day: 100 });
  });

  it('is not charged for a key by a denied request', () => {
    const cluster = new Documents(DAY_ALONE);
    cluster.charge(8);
    cluster.apply(MINUTE_AND_DAY);
    const hash = cluster.machine.hash();
    expect(cluster.charge(5).allowed).toBe(false);
    expect(cluster.machine.hash()).toBe(hash);
  });

  it('takes bytes for inherited grants, and no more than the cap allows', () => {
    const cluster = new Documents('[{limit: 1000, per: day}]');
    for (let i = 0; i < 100; i += 1) {
      cluster.nowMillis += 1;
      cluster.charge();
    }
    const { stateBytes } = cluster.machine;
    const windows = '[{limit: 900, per: hour}, {limit: 1000, per: day}]';
    cluster.apply(windows, '', { partitionBytesMax: 4_096 });
    // One key per window, and 100 runs of 16 bytes.
    expect(cluster.machine.stateBytes).toBe(stateBytes);
    cluster.nowMillis += 1;
    const one = stateBytes - 100 * 16;
    if (stateBytes + one + 102 * 16 > 4_096) throw new Error('the cap is too small for this test');
    expect(cluster.charge().allowed).toBe(true);
    expect(cluster.machine.stateBytes).toBe(stateBytes + one + 102 * 16);
    cluster.apply('[{limit: 800, per: minute}, {limit: 900, per: hour}, {limit: 1000, per: day}]', '', {
      partitionBytesMax: 4_096,
    });
    const before = cluster.machine.hash();
    expect(cluster.charge()).toMatchObject({ allowed: false, refusal: 'at_capacity' });
    expect(cluster.machine.hash()).toBe(before);
  });

  it('inherits nothing from windows of other rules, or from rules that are no windows', () => {
    const harness = new Harness();
    harness.rules(tableOf(1, [{ id: 'a/day', of: 'a' }, { id: 'b/day' }]));
    harness.ask({ userId: 'ada', ruleId: 'a/day' }, { userId: 'ada', ruleId: 'b/day' });
    harness.rules(
      tableOf(2, [{ id: 'a/day', of: 'a' }, { id: 'b/day' }, { id: 'b/hour' }, { id: 'c/day', of: 'c' }]),
    );
    const limits = harness.machine.peek({ ask: 'peek', userId: 'ada' }, harness.nowMillis)?.limits ?? [];
    expect(limits.map(({ remaining }) => remaining)).toEqual([2, 2, 3, 3]);
  });
});
