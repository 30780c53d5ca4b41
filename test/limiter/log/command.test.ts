import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { AllowRequest } from '../../../src/api/request.ts';
import type { BatchedRequest } from '../../../src/api/user-request.ts';
import { LimiterAssertionError } from '../../../src/limiter/assert.ts';
import { BATCH_REQUESTS_MAX, requestsOf } from '../../../src/limiter/log/batch.ts';
import { AllowBatchBuilder } from '../../../src/limiter/log/batch-builder.ts';
import {
  CommandDecodeError,
  decodeCommand,
  encodeRules,
  encodeSweep,
} from '../../../src/limiter/log/command.ts';
import { RULES_MAX, validateRuleTable } from '../../../src/limiter/rules.ts';
import { entryOf, thrownBy } from '../harness.ts';

const text = (maxLength: number) => fc.string({ minLength: 1, maxLength, unit: 'binary' });
const request: fc.Arbitrary<AllowRequest> = fc.record(
  {
    userId: text(40),
    ruleId: fc.constantFrom('a', 'b', 'ü'),
    cost: fc.integer({ min: 2, max: 1_000_000 }),
    timestampMillis: fc.integer({ min: 0, max: 8_640_000_000_000_000 }),
    requestId: text(20),
  },
  { requiredKeys: ['userId'] },
);

/** What an entry holds, without what is not there. */
function heldBy(data: Uint8Array): BatchedRequest[] {
  const command = decodeCommand(data);
  if (command.type !== 'allow') throw new Error(`a command of type ${command.type}`);
  return requestsOf(command.batch).map(withoutAbsent);
}

function withoutAbsent(asked: BatchedRequest): BatchedRequest {
  return Object.fromEntries(
    Object.entries(asked).filter(([, value]) => value !== undefined),
  ) as unknown as BatchedRequest;
}

describe('a batch', () => {
  it('comes back as it was added', () => {
    fc.assert(
      fc.property(fc.array(request, { minLength: 1, maxLength: 30 }), (requests) => {
        expect(heldBy(entryOf(requests))).toEqual(requests.map(withoutAbsent));
      }),
    );
  });

  it('takes the longest texts and the largest integers', () => {
    const asked = {
      userId: 'u'.repeat(1_024),
      ruleId: 'ü'.repeat(64),
      cost: 1_000_000,
      timestampMillis: 8_640_000_000_000_000,
      requestId: 'q'.repeat(128),
    };
    const requests = Array.from({ length: 50 }, () => asked);
    expect(heldBy(entryOf(requests))).toEqual(requests);
  });

  it('takes no more than a user id and two bytes for a plain request', () => {
    const one = entryOf([{ userId: 'ada' }]).length;
    expect(entryOf([{ userId: 'ada' }, { userId: 'grace', cost: 1 }]).length).toBe(one + 2 + 5);
  });

  it('starts over after it was taken', () => {
    const builder = new AllowBatchBuilder();
    builder.add({ userId: 'a', ruleId: 'r', cost: 9, timestampMillis: 3 });
    expect(builder.size).toBe(1);
    builder.take();
    expect(builder.size).toBe(0);
    builder.add({ userId: 'b' });
    expect(builder.take()).toEqual(entryOf([{ userId: 'b' }]));
    expect(() => builder.take()).toThrow(LimiterAssertionError);
  });

  it('is of so many requests at most', () => {
    const builder = new AllowBatchBuilder();
    for (let i = 0; i < BATCH_REQUESTS_MAX; i += 1) builder.add({ userId: `user-${i}` });
    expect(() => builder.add({ userId: 'one more' })).toThrow(LimiterAssertionError);
    expect(heldBy(builder.take())).toHaveLength(BATCH_REQUESTS_MAX);
  });

  it.each([
    { userId: '' },
    { userId: 'x'.repeat(1_025) },
    { userId: 'ü'.repeat(513) },
    { userId: '\ud800' },
    { userId: '\ufeffa' },
    { userId: 'a', ruleId: '' },
    { userId: 'a', ruleId: 'r'.repeat(129) },
    { userId: 'a', cost: 0 },
    { userId: 'a', cost: 1_000_001 },
    { userId: 'a', timestampMillis: 1.5 },
    { userId: 'a', timestampMillis: -1 },
    { userId: 'a', requestId: '' },
    { userId: 'a', requestId: 'x'.repeat(129) },
    { userId: 'a', requestId: '\udc00' },
  ])('does not take in what no entry may hold: %j', (bad) => {
    const builder = new AllowBatchBuilder();
    builder.add({ userId: 'before' });
    expect(() => builder.add(bad)).toThrow(LimiterAssertionError);
    expect(heldBy(builder.take())).toEqual([{ userId: 'before' }]);
  });
});

/** Bytes are a command all of which can be read, or throw the one error they may throw. */
function expectCommandOrDecodeError(bytes: Uint8Array): void {
  const error = thrownBy(() => {
    const command = decodeCommand(bytes);
    if (command.type !== 'allow') return;
    const held = requestsOf(command.batch).map(withoutAbsent);
    expect(heldBy(entryOf(held))).toEqual(held);
  });
  expect(error === undefined || error instanceof CommandDecodeError).toBe(true);
}

describe('the form of a command', () => {
  const TABLE = validateRuleTable({
    version: 7,
    rules: [
      { id: 'a', limit: 0, windowMillis: 1 },
      { id: 'ü', limit: 1_000_000, windowMillis: 2_678_400_000, clock: 'cluster' },
      { id: 'log', limit: 5, windowMillis: 86_400_000, granularityMillis: 60_000 },
      { id: 'counter', limit: 5, windowMillis: 60_000, meter: 'slidingCounter' },
      { id: 'day', limit: 5, windowMillis: 86_400_000, meter: 'fixedWindow' },
      { id: 'month', limit: 5, windowMillis: 2_678_400_000, meter: 'fixedWindow', calendar: 'month' },
      { id: 'tokens', limit: 5, windowMillis: 60_000, meter: 'tokenBucket', burst: 1_000_000 },
      { id: 'queue', limit: 5, windowMillis: 60_000, meter: 'leakyBucket', burst: 1, queue: 999_999 },
    ],
    clockDriftPpm: 0,
  });

  it('brings a rule table back as it was, however many rules it has', () => {
    expect(decodeCommand(encodeRules(TABLE))).toEqual({ type: 'rules', table: TABLE });
    const rules = Array.from({ length: RULES_MAX }, (_, i) => ({
      id: `${'r'.repeat(120)}-${i}`,
      limit: 9,
      windowMillis: 9,
    }));
    const table = validateRuleTable({ version: Number.MAX_SAFE_INTEGER, rules });
    expect(decodeCommand(encodeRules(table))).toEqual({ type: 'rules', table });
    expect(decodeCommand(encodeSweep())).toEqual({ type: 'sweep' });
  });

  it('shares no memory with the encoder', () => {
    for (const data of [entryOf([{ userId: 'a' }]), encodeRules(TABLE)])
      expect(data.buffer.byteLength).toBe(data.byteLength);
  });

  // Kind 5, one request, one rule id, which is the default one; then the request.
  const ONE = [5, 1, 1, 0];
  const A = [1, 0x61];
  // A rule's meter, and what belongs to it: a sliding log.
  const PLAIN = [0, 0, 0, 0, 0];
  it.each([
    ['nothing', []],
    ['an unknown kind', [4]],
    ['a kind of old', [0x97, 1]],
    ['a sweep with more', [7, 0]],
    ['no requests', [5, 0, 1, 0]],
    ['no rule ids', [5, 1, 0, 0, ...A]],
    ['more rule ids than requests', [5, 1, 2, 0, ...A, 0, ...A]],
    ['a rule id twice', [5, 2, 2, ...A, ...A, 0, ...A, 1, ...A, 1]],
    ['fewer requests than it says', [5, 2, 1, 0, 0, ...A]],
    ['more bytes than it needs', [...ONE, 0, ...A, 0]],
    ['a user without an id', [...ONE, 0, 0]],
    ['a user id that ends too early', [...ONE, 0, 2, 0x61]],
    ['a user id that is too long', [...ONE, 0, 0x81, 8, ...Array.from({ length: 1_025 }, () => 0x61)]],
    ['a user id that is not UTF-8', [...ONE, 0, 1, 0xff]],
    ['half a character', [...ONE, 0, 1, 0xc3]],
    ['a user id behind a byte order mark', [...ONE, 0, 4, 0xef, 0xbb, 0xbf, 0x61]],
    ['what no request has', [...ONE, 16, ...A]],
    ['a rule that is not there', [...ONE, 1, ...A, 1]],
    ['no cost', [...ONE, 2, ...A, 0]],
    ['a cost that is too high', [...ONE, 2, ...A, 0xc1, 0x84, 0x3d]],
    ['a timestamp that is too late', [...ONE, 4, ...A, 0x81, 0x80, 0xdc, 0xc2, 0xac, 0xea, 0xac, 0x0f]],
    ['an integer without an end', [...ONE, 4, ...A, ...Array.from({ length: 9 }, () => 0x80)]],
    ['no request id where there should be', [...ONE, 8, ...A, 0]],
    ['a request id that is too long', [...ONE, 8, ...A, 0x81, 1, ...Array.from({ length: 129 }, () => 0x61)]],
    ['rules of a form of old', [6, 1, 0, 0, 0x80, 0x20, 1, ...A, 1, 1, 0]],
    ['rules without rules', [9, 1, 0, 0, 0x80, 0x20, 0]],
    ['rules of version 0', [9, 0, 0, 0, 0x80, 0x20, 1, ...A, 1, 1, 0, ...PLAIN]],
    ['rules with a clock that nobody has', [9, 1, 0, 0, 0x80, 0x20, 1, ...A, 1, 1, 2, ...PLAIN]],
    ['rules with a meter that nobody has', [9, 1, 0, 0, 0x80, 0x20, 1, ...A, 1, 1, 0, 5, 0, 0, 0, 0]],
    ['rules with a calendar that nobody has', [9, 1, 0, 0, 0x80, 0x20, 1, ...A, 1, 1, 0, 2, 0, 2, 0, 0]],
    ['rules with what belongs to another meter', [9, 1, 0, 0, 0x80, 0x20, 1, ...A, 1, 1, 0, 0, 0, 0, 1, 0]],
    ['rules that end too early', [9, 1, 0, 0, 0x80, 0x20, 1, ...A, 1, 1, 0, 0, 0, 0, 0]],
    ['rules with too little room', [9, 1, 0, 0, 0xff, 0x1f, 1, ...A, 1, 1, 0, ...PLAIN]],
  ])('refuses %s', (_name, bytes) => {
    expect(() => decodeCommand(Uint8Array.from(bytes))).toThrow(CommandDecodeError);
  });

  it('reads what is just within its bounds', () => {
    expect(heldBy(Uint8Array.from([...ONE, 0, ...A]))).toEqual([{ userId: 'a' }]);
    expect(heldBy(Uint8Array.from([...ONE, 2, ...A, 0xc0, 0x84, 0x3d]))).toEqual([
      { userId: 'a', cost: 1_000_000 },
    ]);
    expect(decodeCommand(Uint8Array.from([9, 1, 0, 0, 0x80, 0x20, 1, ...A, 1, 1, 0, ...PLAIN])).type).toBe(
      'rules',
    );
  });

  it('refuses counts that the bytes do not hold, without allocating for them', () => {
    for (const kind of [5, 8, 9]) {
      const huge = [kind, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f];
      expect(() => decodeCommand(Uint8Array.from(huge))).toThrow(CommandDecodeError);
    }
  });

  it('makes of random and of damaged bytes a valid command or a CommandDecodeError', () => {
    const good = entryOf([
      { userId: 'ada', cost: 3, timestampMillis: 1_700_000_000_000, requestId: 'q' },
      { userId: 'bøb', ruleId: 'r' },
    ]);
    fc.assert(fc.property(fc.uint8Array({ maxLength: 64 }), expectCommandOrDecodeError), { numRuns: 1_000 });
    const edit = fc.record({ at: fc.nat(good.length - 1), byte: fc.nat(255) });
    fc.assert(
      fc.property(fc.array(edit, { minLength: 1, maxLength: 3 }), fc.nat(good.length), (edits, length) => {
        const bytes = good.slice();
        for (const { at, byte } of edits) bytes[at] = byte;
        expectCommandOrDecodeError(bytes);
        expectCommandOrDecodeError(bytes.subarray(0, length));
      }),
      { numRuns: 1_500 },
    );
  });
});
