/** The bytes of log entries: they decode to the encoded command, and damaged bytes are refused. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type AllowRequest, TIMESTAMP_MILLIS_MAX } from '../../../src/api/request.ts';
import type { BatchedRequest } from '../../../src/api/user-request.ts';
import { LimiterAssertionError } from '../../../src/limiter/assert.ts';
import { BATCH_REQUESTS_MAX, requestsOf } from '../../../src/limiter/log/batch.ts';
import { AllowBatchBuilder } from '../../../src/limiter/log/batch-builder.ts';
import {
  CommandDecodeError,
  decodeCommand,
  encodeRules,
  encodeSweep,
  encodeUtc,
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

/** The fields of an entry, without the absent ones. */
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
  it('decodes to the requests that were added', () => {
    fc.assert(
      fc.property(fc.array(request, { minLength: 1, maxLength: 30 }), (requests) => {
        expect(heldBy(entryOf(requests))).toEqual(requests.map(withoutAbsent));
      }),
    );
  });

  it('accepts the longest texts and the largest integers', () => {
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

  it('takes no more than a user id and a byte for a plain request', () => {
    const one = entryOf([{ userId: 'ada' }]).length;
    expect(entryOf([{ userId: 'ada' }, { userId: 'grace', cost: 1 }]).length).toBe(one + 1 + 5);
  });

  it('takes a byte more per request if another request needs a column', () => {
    const plain = Array.from({ length: 9 }, () => ({ userId: 'ada' }));
    const more = [...plain, { userId: 'ada', requestId: 'q' }];
    expect(entryOf(more).length).toBe(entryOf([...plain, { userId: 'ada' }]).length + 10 + 1);
  });

  it('starts empty after its bytes were taken', () => {
    const builder = new AllowBatchBuilder();
    builder.add({ userId: 'a', ruleId: 'r', cost: 9, timestampMillis: 3 });
    expect(builder.size).toBe(1);
    builder.take();
    expect(builder.size).toBe(0);
    builder.add({ userId: 'b' });
    expect(builder.take()).toEqual(entryOf([{ userId: 'b' }]));
    expect(() => builder.take()).toThrow(LimiterAssertionError);
  });

  it('holds a bounded number of requests', () => {
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
  ])('refuses a request that no entry may hold: %j', (bad) => {
    const builder = new AllowBatchBuilder();
    builder.add({ userId: 'before' });
    expect(() => builder.add(bad)).toThrow(Error);
    expect(heldBy(builder.take())).toEqual([{ userId: 'before' }]);
  });

  it('is unchanged by a request that is not accepted, for any other requests', () => {
    const builder = new AllowBatchBuilder();
    const full = { userId: 'a', ruleId: 'r', cost: 2, timestampMillis: 3, requestId: 'q' };
    builder.add({ userId: 'first' });
    builder.add(full);
    const further = [{ userId: 'b', ruleId: 's' }];
    const guard = { userId: 'x'.repeat(1_025), version: 1 };
    for (const bad of [
      { requestId: 'x'.repeat(129) },
      { guard },
      { askedDigest: 0, further },
      { attempt: 0, askedDigest: 5 },
    ])
      expect(() => builder.add({ ...full, ...bad })).toThrow(Error);
    builder.add({ userId: 'last' });
    expect(heldBy(builder.take())).toEqual([{ userId: 'first' }, full, { userId: 'last' }]);
  });
});

/** Bytes either decode completely or throw `CommandDecodeError`, never anything else. */
function expectCommandOrDecodeError(bytes: Uint8Array): void {
  const error = thrownBy(() => {
    const command = decodeCommand(bytes);
    if (command.type !== 'allow') return;
    const held = requestsOf(command.batch).map(withoutAbsent);
    expect(heldBy(entryOf(held))).toEqual(held);
  });
  expect(error === undefined || error instanceof CommandDecodeError).toBe(true);
}

// Kind 1, the columns with keys and these, one request, one rule id (the default); then the columns.
const A = [1, 0x61];
const one = (columns: readonly number[], ...rest: readonly number[]): number[] => [
  1,
  ...columns,
  1,
  1,
  0,
  ...rest,
];
const two = (columns: readonly number[], ...rest: readonly number[]): number[] => [
  1,
  ...columns,
  2,
  1,
  0,
  ...A,
  ...A,
  ...rest,
];
const [KEYS, RULE, COST, TIME, ID, REFUND, DIGEST] = [1, 3, 5, 9, 17, 33, 65];
const [FURTHER, REMEMBERED, GUARD, SETTLED, ATTEMPT] = [
  [0x81, 1],
  [0x81, 2],
  [0x81, 4],
  [0x81, 8],
  [0x81, 16],
];

/** A mask with the bits of all these columns. */
function withBits(...columns: readonly (readonly number[])[]): number[] {
  const [low = 0, high = 0] = [0, 1].map((at) =>
    columns.reduce((bits, column) => bits | (column[at] ?? 0), 0),
  );
  return [low | 0x80, high];
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

  it('round-trips a rule table with any number of rules', () => {
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

  it('round-trips the offset of UTC, up to the largest that a wall clock can show', () => {
    for (const aheadMillis of [0, 1_001, TIMESTAMP_MILLIS_MAX])
      expect(decodeCommand(encodeUtc(aheadMillis))).toEqual({ type: 'utc', aheadMillis });
    expect(() => decodeCommand(encodeUtc(TIMESTAMP_MILLIS_MAX + 1))).toThrow(CommandDecodeError);
  });

  it('does not use the memory of the encoder', () => {
    for (const data of [entryOf([{ userId: 'a' }]), encodeRules(TABLE)])
      expect(data.buffer.byteLength).toBe(data.byteLength);
  });

  // The bytes of a rule's meter and its fields, for a sliding log.
  const PLAIN = [0, 0, 0, 0, 0];
  it.each([
    ['nothing', []],
    ['an unknown kind', [99]],
    ['an offset of UTC without a number', [7]],
    ['a kind of two bytes', [0x81, 0]],
    ['a sweep with a further byte', [3, 0]],
    ['requests without keys', [1, 4, 1, 1, 0, 1]],
    ['an unknown column', one([0x81, 32], ...A, 1)],
    ['no requests', [1, KEYS, 0, 1, 0]],
    ['no rule ids', [1, KEYS, 1, 0, 0, ...A]],
    ['more rule ids than requests', [1, RULE, 1, 2, 0, ...A, ...A, 1]],
    ['a rule id twice', [1, RULE, 2, 2, ...A, ...A, ...A, ...A, 0, 1]],
    ['fewer requests than it says', [1, KEYS, 2, 1, 0, ...A]],
    ['more bytes than it needs', one([KEYS], ...A, 0)],
    ['a user without an id', one([KEYS], 0)],
    ['a user id that ends too early', one([KEYS], 2, 0x61)],
    ['a user id that is too long', one([KEYS], 0x81, 8, ...Array.from({ length: 1_025 }, () => 0x61))],
    ['a user id that is not UTF-8', one([KEYS], 1, 0xff)],
    ['half a character', one([KEYS], 1, 0xc3)],
    ['a user id behind a byte order mark', one([KEYS], 4, 0xef, 0xbb, 0xbf, 0x61)],
    ['an index beyond the rule ids', one([RULE], ...A, 1)],
    ['a cost that is too high', one([COST], ...A, 0xc0, 0x84, 0x3d)],
    ['a timestamp that is too late', one([TIME], ...A, 0x82, 0x80, 0xf0, 0x96, 0x8c, 0xc1, 0xac, 0x0f)],
    ['an integer without an end', one([TIME], ...A, ...Array.from({ length: 9 }, () => 0x80))],
    ['a request id that is too long', one([ID], ...A, 0x81, 1, ...Array.from({ length: 129 }, () => 0x61))],
    ['a column that ends too early', two([COST], 3)],
    ['a column without any value', two([COST], 0, 0)],
    ['an invalid refund flag', one([REFUND], ...A, 2)],
    ['a refund without an id', one([REFUND], ...A, 1)],
    ['a refund with a cost', one([ID | REFUND | COST], ...A, 4, ...A, 1)],
    ['a refund with a time', one([ID | REFUND | TIME], ...A, 4, ...A, 1)],
    ['a refund with a digest', one([ID | REFUND | DIGEST], ...A, ...A, 1, 5)],
    ['a refund under several limits', two(withBits([ID | REFUND], FURTHER), ...A, 0, 1, 0, 1, 0)],
    ['a refund that is bound to a record', one(withBits([ID | REFUND], GUARD), ...A, ...A, 1, ...A, 9)],
    ['several limits without a digest', two(FURTHER, 1, 0)],
    ['more further limits than requests', two(withBits([DIGEST], FURTHER), 5, 0, 2, 0)],
    ['a further limit of a further limit', two(withBits([DIGEST], FURTHER), 5, 0, 1, 1)],
    ['a further limit with an id', two(withBits([ID | DIGEST], FURTHER), 0, ...A, 5, 0, 1, 0)],
    ['a further limit with a time', two(withBits([TIME | DIGEST], FURTHER), 0, 9, 5, 0, 1, 0)],
    [
      'a further limit that is bound to a record',
      two(withBits([DIGEST], FURTHER, GUARD), 5, 0, 1, 0, 0, ...A, 9),
    ],
    ['a lookup of a remembered grant without an id', one(withBits([DIGEST], REMEMBERED), ...A, 5, 1)],
    ['a lookup of a remembered grant without a digest', one(withBits([ID], REMEMBERED), ...A, ...A, 1)],
    [
      'a lookup of a remembered grant that is settled',
      one(withBits([ID | DIGEST], REMEMBERED, SETTLED), ...A, ...A, 5, 1, 1),
    ],
    ['a refund that is settled', one(withBits([ID | REFUND], SETTLED), ...A, ...A, 1, 1)],
    ['an invalid settlement flag', one(SETTLED, ...A, 2)],
    ['an attempt without an id', one(withBits([DIGEST], ATTEMPT), ...A, 5, 9)],
    ['an attempt without a digest', one(withBits([ID], ATTEMPT), ...A, ...A, 9)],
    [
      'an attempt of a lookup of a remembered grant',
      one(withBits([ID | DIGEST], REMEMBERED, ATTEMPT), ...A, ...A, 5, 1, 9),
    ],
    ['an attempt of a refund', one(withBits([ID | REFUND], ATTEMPT), ...A, ...A, 1, 9)],
    [
      'an attempt of a further limit',
      two(withBits([ID | DIGEST], FURTHER, ATTEMPT), ...A, 0, 5, 0, 1, 0, 9, 9),
    ],
    ['an attempt with the number 0', one(withBits([ID | DIGEST], ATTEMPT), ...A, ...A, 5, 0)],
    ['a guard without a version', one(GUARD, ...A, ...A)],
    ['rules without rules', [2, 1, 0, 0, 0x80, 0x20, 0]],
    ['rules of version 0', [2, 0, 0, 0, 0x80, 0x20, 1, ...A, 0, 1, 1, 0, ...PLAIN]],
    ['rules with an unknown clock', [2, 1, 0, 0, 0x80, 0x20, 1, ...A, 0, 1, 1, 2, ...PLAIN]],
    ['rules with an unknown meter', [2, 1, 0, 0, 0x80, 0x20, 1, ...A, 0, 1, 1, 0, 5, 0, 0, 0, 0]],
    ['rules with an unknown calendar', [2, 1, 0, 0, 0x80, 0x20, 1, ...A, 0, 1, 1, 0, 2, 0, 2, 0, 0]],
    ['rules with a field of another meter', [2, 1, 0, 0, 0x80, 0x20, 1, ...A, 0, 1, 1, 0, 0, 0, 0, 1, 0]],
    ['rules of a window whose id names no window', [2, 1, 0, 0, 0x80, 0x20, 1, ...A, 1, 1, 1, 0, ...PLAIN]],
    ['rules that end too early', [2, 1, 0, 0, 0x80, 0x20, 1, ...A, 0, 1, 1, 0, 0, 0, 0, 0]],
    ['rules with a cap that is too small', [2, 1, 0, 0, 0xff, 0x1f, 1, ...A, 0, 1, 1, 0, ...PLAIN]],
  ])('refuses %s', (_name, bytes) => {
    expect(() => decodeCommand(Uint8Array.from(bytes))).toThrow(CommandDecodeError);
  });

  it('accepts values at their bounds', () => {
    expect(heldBy(Uint8Array.from(one([KEYS], ...A)))).toEqual([{ userId: 'a' }]);
    expect(heldBy(Uint8Array.from(one([COST], ...A, 0xbf, 0x84, 0x3d)))).toEqual([
      { userId: 'a', cost: 1_000_000 },
    ]);
    const latest = [0x81, 0x80, 0xf0, 0x96, 0x8c, 0xc1, 0xac, 0x0f];
    expect(heldBy(Uint8Array.from(one([TIME], ...A, ...latest)))).toEqual([
      { userId: 'a', timestampMillis: 8_640_000_000_000_000 },
    ]);
    expect(decodeCommand(Uint8Array.from([2, 1, 0, 0, 0x80, 0x20, 1, ...A, 0, 1, 1, 0, ...PLAIN])).type).toBe(
      'rules',
    );
  });

  it('refuses counts that exceed the bytes, without allocating memory for them', () => {
    for (const head of [[1, 1], [2], [4]]) {
      const huge = [...head, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f];
      expect(() => decodeCommand(Uint8Array.from(huge))).toThrow(CommandDecodeError);
    }
  });

  it('turns random and damaged bytes into a valid command or a CommandDecodeError', () => {
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
