/**
 * `CL.THROTTLE` uses the numbers of the command, and answers with the five integers of redis-cell, in whole seconds.
 */
import fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { questionOf } from '../../src/api/question.ts';
import { LIMIT_MAX, WINDOW_MILLIS_MAX } from '../../src/api/rule.ts';
import { parseStatedThrottle, statedThrottleId } from '../../src/api/stated-rule.ts';
import { decisionOf, limitStatusOf } from '../api/decision-of.ts';
import { eventually } from '../cluster/harness.ts';
import { Harness, tableOf } from '../limiter/harness.ts';
import { PlayedListener, type RespClient } from './fixtures.ts';

let played: PlayedListener;
let client: RespClient;
const ruleId = statedThrottleId({ maxBurst: 15, count: 30, periodMillis: 60_000 });

beforeAll(async () => {
  played = await PlayedListener.listening();
  client = played.client();
});

beforeEach(() => {
  played.asked.length = 0;
  played.answer = { kind: 'decision', decision: decisionOf() };
});

afterAll(() => played.stop());

async function throttle(...args: readonly (string | number)[]): Promise<unknown> {
  return client.ask('CL.THROTTLE', 'ada', ...args.map(String));
}

describe('CL.THROTTLE', () => {
  it.each([
    [[15, 30, 60], '30/60000ms+15', 1],
    [[0, 1, 1, 1], '1/1000ms+0', 1],
    [[14, 30, 60, 7], '30/60000ms+14', 7],
    [[1, 7, 1], '7/1000ms+1', 1],
    [[0, 1_000_000, 1], '1000000/1000ms+0', 1],
    [[999_999, 1_000_000, 60], '1000000/60000ms+999999', 1],
    // More than a million: the rate is a million in 333.3 ms, rounded up.
    [[0, 3_000_000, 1], '1000000/334ms+0', 1],
    // More than 31 days: as many as fit into 31 days.
    [[1, 10, 10_000_000], '2/2000000000ms+1', 1],
    // An intermediate value is too large for an exact number.
    [[999_999, 9_007_199_254_740_991, 9_007_199_254_740_991], '1000000/1000000000ms+999999', 1],
  ])('asks %j by the rule %s', async (args, rule, cost) => {
    await throttle(...args);
    expect(played.asked).toEqual([questionOf({ userId: 'ada', rule, cost })]);
  });

  it('asks for a rate that is never above that of the command, and hardly below', async () => {
    const args = [
      fc.nat(LIMIT_MAX - 1),
      fc.integer({ min: 1, max: 3_000_000 }),
      fc.integer({ min: 1, max: 8_640_000 }),
    ] as const;
    await fc.assert(
      fc.asyncProperty(...args, async (burst, count, periodSeconds) => {
        played.asked.length = 0;
        const isTooLong = (burst + 1) * periodSeconds * 1_000 > WINDOW_MILLIS_MAX * count;
        await throttle(burst, count, periodSeconds);
        const rules = played.asked.map(({ rule = '' }) => parseStatedThrottle(rule));
        expect(rules).toHaveLength(isTooLong ? 0 : 1);
        for (const rule of rules) {
          expect(rule?.maxBurst).toBe(burst);
          const asked = rule!.count * periodSeconds * 1_000;
          const stated = rule!.periodMillis * count;
          expect(stated).toBeGreaterThanOrEqual(asked);
          expect(stated - asked).toBeLessThan(count);
        }
      }),
    );
  });

  it('answers a grant without a time to wait', async () => {
    const decision = decisionOf({
      ruleId,
      limit: 30,
      remaining: 15,
      retryAfterMillis: 7,
      resetMillis: 2_003,
    });
    played.answer = { kind: 'decision', decision };
    expect(await throttle(15, 30, 60)).toEqual([0, 16, 15, -1, 3]);
    // The allowance for clock drift is left out.
    for (const resetMillis of [2_000, 2_001]) {
      played.answer = { kind: 'decision', decision: { ...decision, resetMillis } };
      expect(await throttle(15, 30, 60)).toEqual([0, 16, 15, -1, 2]);
    }
  });

  it('answers a denial with the time to wait, unless no wait would help', async () => {
    const decision = decisionOf({
      ruleId,
      allowed: false,
      limit: 30,
      remaining: 3,
      retryAfterMillis: 1,
      resetMillis: 0,
    });
    played.answer = { kind: 'decision', decision };
    expect(await throttle(15, 30, 60, 16)).toEqual([1, 16, 3, 1, 0]);
  });

  it('only peeks for a quantity of 0, and for more than can ever be granted', async () => {
    played.peeks.length = 0;
    const before = { ...played.listener.counts.answers };
    const keyStatus = limitStatusOf({
      ruleId,
      limit: 30,
      remaining: 3,
      retryAfterMillis: 0,
      resetMillis: 2_003,
    });
    const decided = { term: 1, index: 1, timeMillis: 1 };
    played.keyStatus = { kind: 'keyStatus', keyStatus: { limits: [keyStatus], decided, rulesVersion: 7 } };
    expect(await throttle(15, 30, 60, 0)).toEqual([0, 16, 3, -1, 3]);
    expect(await throttle(15, 30, 60, 17)).toEqual([1, 16, 3, -1, 3]);
    expect(await throttle(15, 30, 60, 9_007_199_254_740_991)).toEqual([1, 16, 3, -1, 3]);
    const peek = { key: 'user=ada', rule: ruleId };
    expect([played.peeks, played.asked]).toEqual([[peek, peek, peek], []]);
    // The node was not asked for a grant.
    expect(played.listener.counts.answers).toEqual(before);
  });

  it('is limited as in redis-cell when it peeks after commands with other numbers used more than these allow', async () => {
    const decided = { term: 1, index: 1, timeMillis: 1 };
    const answers: unknown[] = [];
    for (const resetMillis of [32_020, 32_021, 40_000]) {
      const keyStatus = limitStatusOf({ ruleId, limit: 30, remaining: 0, retryAfterMillis: 1, resetMillis });
      played.keyStatus = { kind: 'keyStatus', keyStatus: { limits: [keyStatus], decided, rulesVersion: 7 } };
      answers.push(await throttle(15, 30, 60, 0));
    }
    expect(answers).toEqual([
      [0, 16, 0, -1, 32],
      [1, 16, 0, 1, 33],
      [1, 16, 0, 8, 40],
    ]);
  });

  it('returns the documented steps of redis-cell', async () => {
    const machine = new Harness();
    machine.rules(tableOf(1, [{}], { clockDriftPpm: 500 }));
    const steps: unknown[] = [];
    for (let i = 0; i < 17; i += 1) {
      played.answer = { kind: 'decision', decision: machine.one({ userId: 'ada', ruleId }) };
      steps.push(await throttle(15, 30, 60));
    }
    expect(steps).toEqual([
      ...Array.from({ length: 16 }, (_, i) => [0, 16, 15 - i, -1, 2 * (i + 1)]),
      [1, 16, 0, 2, 32],
    ]);
  });

  it('answers peeks in the order of the commands', async () => {
    played.keyStatus = undefined;
    client.send('CL.THROTTLE', 'ada', '1', '1', '1', '0');
    client.send('PING');
    await eventually('it peeks', () => (played.openPeeks.length === 1 ? true : undefined));
    played.openPeeks[0]?.({ kind: 'unavailable', reason: 'no_leader', proposed: false }, 0);
    const error = expect.stringMatching(/^UNAVAILABLE no_leader .*; nothing was granted$/);
    expect(await client.next(2)).toEqual([{ error }, 'PONG']);
  });

  it('refuses other numbers of arguments with its usage', async () => {
    const error = expect.stringMatching(/^ERR Cell error: Usage: CL\.THROTTLE <key> <max_burst>/);
    for (const args of [[], ['k'], ['k', '1'], ['k', '1', '1'], ['k', '1', '1', '1', '1', '1']]) {
      expect(await client.ask('CL.THROTTLE', ...args)).toEqual({ error });
    }
    expect(played.asked).toEqual([]);
  });

  it.each([
    [['x', 1, 1], "ERR Couldn't parse as integer: x"],
    [[1, '1.5', 1], "ERR Couldn't parse as integer: 1.5"],
    [[1, 1, ''], "ERR Couldn't parse as integer: "],
    [[1, 1, 1, '+1'], "ERR Couldn't parse as integer: +1"],
    [[1, 0, 1], 'ERR Zero rates are not supported'],
    [[1, 1, 0], 'ERR Zero rates are not supported'],
    [[1, -1, 1], 'ERR count and period must be positive'],
    [[1, 1, -1], 'ERR count and period must be positive'],
    [[-1, 1, 1], 'ERR max_burst must be an integer from 0 to 999999'],
    [[LIMIT_MAX, 1, 1], 'ERR max_burst must be an integer from 0 to 999999'],
    [[1, 1, 1, -1], 'ERR quantity must not be negative'],
    [
      [0, 1, 2_678_401],
      'ERR (max_burst + 1) * period / count must be at most 2678400 seconds, which is 31 days',
    ],
  ])('refuses impossible numbers: %j', async (args, error) => {
    expect(await throttle(...args)).toEqual({ error });
    expect(played.asked).toEqual([]);
  });

  it('refuses invalid keys', async () => {
    const numbers = ['1', '1', '1'];
    expect(await client.ask('CL.THROTTLE', '', ...numbers)).toEqual({
      error: 'ERR userId must be text of 1 to 256 bytes',
    });
    expect(await client.ask('CL.THROTTLE', Buffer.from('ff', 'hex'), ...numbers)).toEqual({
      error: 'ERR userId must be UTF-8, and some of its bytes are not',
    });
    expect(played.asked).toEqual([]);
  });

  it('returns why no node could decide', async () => {
    played.answer = { kind: 'unavailable', reason: 'overloaded', proposed: false };
    const error = expect.stringMatching(/^UNAVAILABLE overloaded .*; nothing was granted$/);
    expect(await throttle(1, 1, 1)).toEqual({ error });
  });
});
