/** Tests the digest of a request: equal for a retry, different for any other request. */
import { describe, expect, it } from 'vitest';
import type { Question } from '../../src/api/question.ts';
import { ASKED_DIGEST_MAX } from '../../src/api/request.ts';
import { askedDigest } from '../../src/matching/part-request.ts';

function digestOf(descriptors: Readonly<Record<string, string>>, more: Partial<Question> = {}): number {
  return askedDigest({ descriptors: new Map(Object.entries(descriptors)), ...more });
}

describe('the digest of a request', () => {
  it('does not depend on the order of descriptors, nor on empty ones', () => {
    expect(digestOf({ ip: '10.0.0.1', user: 'ada' })).toBe(
      digestOf({ user: 'ada', ip: '10.0.0.1', plan: '' }),
    );
    expect(digestOf({ user: 'ada' })).toBe(digestOf({ user: 'ada' }, { cost: 1 }));
  });

  it('never changes: nodes of two releases compare it', () => {
    expect(digestOf({ user: 'ada' })).toMatchInlineSnapshot(`235744229933131`);
  });

  it('differs for another user, name, cost, time or rule', () => {
    const all = [
      digestOf({ user: 'ada' }),
      digestOf({ user: 'adb' }),
      digestOf({ user: 'ada', ip: 'x' }),
      digestOf({ name: 'ada' }),
      digestOf({ user: 'ada' }, { cost: 2 }),
      digestOf({ user: 'ada' }, { timestampMillis: 0 }),
      digestOf({ user: 'ada' }, { timestampMillis: 1 }),
      digestOf({ user: 'ada' }, { rule: 'login' }),
      digestOf({ user: 'ada","ip' }),
      digestOf({ 'user","ada': '', user: 'ada"],["ip' }),
    ];
    expect(new Set(all).size).toBe(all.length);
  });

  it('practically never collides, even for many similar requests', () => {
    const seen = new Set<number>();
    let count = 0;
    for (let user = 0; user < 20_000; user += 1) {
      for (const cost of [1, 2, 3, 10, 11]) {
        const digest = digestOf({ user: `user${user}` }, { cost });
        expect(digest >= 1 && digest <= ASKED_DIGEST_MAX).toBe(true);
        seen.add(digest);
        count += 1;
      }
    }
    expect(seen.size).toBe(count);
  });
});
