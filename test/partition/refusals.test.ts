/** Requests that can never be decided are refused at the API and leave nothing in the log. */
import { describe, expect, it } from 'vitest';
import { PARTITION_DEFAULTS } from '../../src/partition/partition-options.ts';
import { allowed, FakeDriver, START, tableOf } from './fake-driver.ts';

describe('requests that cannot be decided under the rules', () => {
  const driver = FakeDriver.leading({
    table: tableOf(1, { id: 'a', limit: 5 }, { id: 'event', clock: 'request' }, { id: 'never', limit: 0 }),
  });

  it.each([
    ['cost', { userId: 'u', cost: 6 }, '5'],
    ['rule', { userId: 'u', ruleId: 'unknown' }, 'unknown'],
    ['timestampMillis', { userId: 'u', timestampMillis: 5 }, 'cluster'],
    ['timestampMillis', { userId: 'u', ruleId: 'event', timestampMillis: START + 60_001 }, '60000 ms'],
  ] as const)('are refused by naming %s and its bound: %j', (field, request, bound) => {
    const [answer] = driver.ask(request);
    expect(answer).toMatchObject({ kind: 'invalid', field });
    expect(answer?.kind === 'invalid' && answer.message).toContain(bound);
    expect(driver.turn()).toBeUndefined();
  });

  it('are accepted up to a timestamp relative to the later of group time and wall clock', () => {
    const own = FakeDriver.leading({ table: tableOf(1, { clock: 'request' }) });
    const latest = START + PARTITION_DEFAULTS.maxAheadMillis;
    expect(allowed(own.decide({ userId: 'u', timestampMillis: latest }))).toBe(true);
    own.wallOffset = START + 5_000;
    expect(allowed(own.decide({ userId: 'v', timestampMillis: latest + 5_000 }))).toBe(true);
    own.wallOffset = START - 99_000;
    expect(own.ask({ userId: 'w', timestampMillis: latest + 1 })).toMatchObject([{ kind: 'invalid' }]);
    expect(allowed(own.decide({ userId: 'w', timestampMillis: latest }))).toBe(true);
  });

  it('are denied, not invalid, under a rule with limit 0', () => {
    expect(allowed(driver.decide({ userId: 'u', ruleId: 'never', cost: 9 }))).toBe(false);
  });
});
