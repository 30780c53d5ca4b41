/** Requests that ask only for the remembered grant of their id. */
import { describe, expect, it } from 'vitest';
import { type AllowRequest, KEY_BYTES_MAX } from '../../src/api/request.ts';
import { requestsOf } from '../../src/limiter/log/batch.ts';
import { decodeCommand } from '../../src/limiter/log/command.ts';
import { LimiterStateMachine } from '../../src/limiter/state-machine.ts';
import { entryOf, harnessWith, restoreInto, snapshotOf } from './harness.ts';

const FIRST: AllowRequest = { userId: 'ada', ruleId: 'rule0', requestId: 'r1', askedDigest: 5 };
const AGAIN: AllowRequest = { ...FIRST, ifRemembered: true };

describe('a request that asks only for a remembered grant', () => {
  it('gets no new grant, and charges nothing', () => {
    const limiter = harnessWith({ limit: 2 });
    expect(limiter.one(AGAIN)).toMatchObject({ allowed: false, refusal: 'not_remembered' });
    const granted = limiter.one(FIRST);
    expect(granted).toMatchObject({ allowed: true, remaining: 1 });
    expect(limiter.one(AGAIN)).toEqual(granted);
    expect(limiter.one({ userId: 'ada', ruleId: 'rule0' })).toMatchObject({ allowed: true, remaining: 0 });
    expect(limiter.one(AGAIN)).toEqual(granted);
  });

  it('gets the remembered grant under all its limits, without naming them', () => {
    const limiter = harnessWith({}, {});
    const granted = limiter.one({ ...FIRST, further: [{ userId: 'ada', ruleId: 'rule1' }] });
    expect(granted.limits).toHaveLength(2);
    expect(limiter.one(AGAIN)).toEqual(granted);
  });

  it('is refused as a different request if its digest differs, and gets nothing after a refund', () => {
    const limiter = harnessWith({});
    limiter.one(FIRST);
    expect(limiter.one({ ...AGAIN, askedDigest: 6 })).toMatchObject({ refusal: 'request_id_reused' });
    limiter.one({ ask: 'refund', userId: 'ada', requestId: 'r1' });
    expect(limiter.one(AGAIN)).toMatchObject({ refusal: 'refunded' });
    limiter.nowMillis += 200_000;
    expect(limiter.one(AGAIN)).toMatchObject({ refusal: 'not_remembered' });
  });

  it('round-trips through an entry, and needs an id', () => {
    const command = decodeCommand(entryOf([AGAIN, { userId: 'bob' }]));
    const { batch } = command as Extract<typeof command, { type: 'allow' }>;
    expect(requestsOf(batch)).toEqual([AGAIN, { userId: 'bob' }]);
    expect(() => entryOf([{ ...AGAIN, requestId: undefined }])).toThrow(/need a request id/);
  });
});

describe('a grant with a request id', () => {
  // 512 and 1,024 have only zeros in their lowest 9 bits.
  it.each([1, 511, 512, 513, 600, KEY_BYTES_MAX - 1, KEY_BYTES_MAX])(
    'is repeated, restored, refunded and forgotten under a key of %i bytes',
    (bytes) => {
      const limiter = harnessWith({ limit: 5 });
      const request = { userId: 'k'.repeat(bytes), ruleId: 'rule0', requestId: 'r'.repeat(128) };
      const granted = limiter.one(request);
      expect(granted).toMatchObject({ allowed: true, ruleId: 'rule0', remaining: 4 });
      expect(limiter.one(request)).toEqual(granted);
      const restored = new LimiterStateMachine();
      restoreInto(restored, snapshotOf(limiter.machine));
      expect([...restored.inspect()]).toEqual([...limiter.machine.inspect()]);
      expect(
        limiter.one({ ask: 'refund', userId: request.userId, requestId: request.requestId }),
      ).toMatchObject({
        refund: { refunded: true, cost: 1 },
      });
      limiter.nowMillis += 200_000;
      expect(limiter.one({ userId: request.userId, ruleId: 'rule0' })).toMatchObject({ remaining: 4 });
      expect([...limiter.machine.inspect()].map(({ kind }) => kind)).not.toContain('request');
    },
  );
});
