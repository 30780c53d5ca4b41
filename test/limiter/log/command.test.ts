import fc from 'fast-check';
import { pack } from 'msgpackr';
import { describe, expect, it } from 'vitest';
import { type AllowBatch, AllowBatchBuilder } from '../../../src/limiter/log/batch.ts';
import { CommandDecodeError, decodeCommand, encodeCommand } from '../../../src/limiter/log/command.ts';
import { type AllowRequest, InvalidRequestError } from '../../../src/limiter/request.ts';
import { validateRuleTable } from '../../../src/limiter/rules.ts';
import { thrownBy } from '../harness.ts';

const text = (maxLength: number) => fc.string({ minLength: 1, maxLength, unit: 'binary' });
const request: fc.Arbitrary<AllowRequest> = fc.record(
  {
    userId: text(40),
    ruleId: fc.constantFrom('a', 'b', 'ü'),
    cost: fc.integer({ min: 1, max: 1_000_000 }),
    timestampMillis: fc.integer({ min: 0, max: 8_640_000_000_000_000 }),
    requestId: text(20),
  },
  { requiredKeys: ['userId'] },
);

function batchOf(requests: readonly AllowRequest[]): AllowBatch {
  const builder = new AllowBatchBuilder();
  for (const each of requests) builder.add(each);
  return builder.take();
}

function rowsOf(batch: AllowBatch): AllowRequest[] {
  return batch.userIds.map((userId, i) => ({
    userId,
    ruleId: batch.ruleIds[batch.ruleIndexes?.[i] ?? 0]!,
    cost: batch.costs?.[i] ?? 1,
    timestampMillis: batch.timestampsMillis?.[i] ?? undefined,
    requestId: batch.requestIds?.[i] ?? undefined,
  }));
}

describe('a batch', () => {
  it('has only the columns that carry something', () => {
    expect(batchOf([{ userId: 'a' }, { userId: 'b', cost: 1 }])).toEqual({
      userIds: ['a', 'b'],
      ruleIds: [''],
    });
    expect(batchOf([{ userId: 'a' }, { userId: 'b', ruleId: 'r', cost: 2, requestId: 'q' }])).toEqual({
      userIds: ['a', 'b'],
      ruleIds: ['', 'r'],
      ruleIndexes: [0, 1],
      costs: [1, 2],
      requestIds: [null, 'q'],
    });
  });

  it('starts over after it was taken', () => {
    const builder = new AllowBatchBuilder();
    builder.add({ userId: 'a', cost: 9, timestampMillis: 3 });
    expect(builder.size).toBe(1);
    builder.take();
    expect(builder.size).toBe(0);
    expect(builder.add({ userId: 'b' })).toBe(0);
    expect(builder.take()).toEqual({ userIds: ['b'], ruleIds: [''] });
  });

  it.each([
    [{ userId: '' }, 'userId'],
    [{ userId: 'x'.repeat(257) }, 'userId'],
    [{ userId: '\udc00' }, 'userId'],
    [{ userId: 'a', ruleId: '' }, 'ruleId'],
    [{ userId: 'a', cost: 0 }, 'cost'],
    [{ userId: 'a', cost: 1_000_001 }, 'cost'],
    [{ userId: 'a', timestampMillis: 1.5 }, 'timestampMillis'],
    [{ userId: 'a', requestId: 'x'.repeat(129) }, 'requestId'],
  ])('does not take in what no entry may hold: %j', (bad, field) => {
    const builder = new AllowBatchBuilder();
    const error = thrownBy(() => builder.add(bad));
    expect(error).toBeInstanceOf(InvalidRequestError);
    expect(error).toMatchObject({ code: 'INVALID_REQUEST', field });
    expect(builder.size).toBe(0);
  });
});

/** Bytes are a command that encodes and decodes to itself, or throw the one error they may throw. */
function expectCommandOrDecodeError(bytes: Uint8Array): void {
  const error = thrownBy(() => {
    const command = decodeCommand(bytes);
    expect(decodeCommand(encodeCommand(command))).toEqual(command);
  });
  expect(error === undefined || error instanceof CommandDecodeError).toBe(true);
}

describe('the form of a command', () => {
  it('brings every batch back as it was', () => {
    fc.assert(
      fc.property(fc.array(request, { minLength: 1, maxLength: 30 }), (requests) => {
        const batch = batchOf(requests);
        const command = decodeCommand(encodeCommand({ type: 'allow', batch }));
        expect(command).toEqual({ type: 'allow', batch });
        expect(rowsOf(batch)).toEqual(
          requests.map((r) => ({
            userId: r.userId,
            ruleId: r.ruleId ?? '',
            cost: r.cost ?? 1,
            timestampMillis: r.timestampMillis,
            requestId: r.requestId,
          })),
        );
      }),
    );
  });

  it('brings a rule table back as it was', () => {
    const table = validateRuleTable({
      version: 7,
      rules: [
        { id: 'a', limit: 0, windowMillis: 1 },
        { id: 'ü', limit: 1_000_000, windowMillis: 2_678_400_000, clock: 'cluster' },
      ],
      clockDriftPpm: 0,
    });
    expect(decodeCommand(encodeCommand({ type: 'rules', table }))).toEqual({ type: 'rules', table });
    expect(decodeCommand(encodeCommand({ type: 'sweep' }))).toEqual({ type: 'sweep' });
  });

  it('shares no memory with the encoder', () => {
    const data = encodeCommand({ type: 'allow', batch: batchOf([{ userId: 'a' }]) });
    expect(data.buffer.byteLength).toBe(data.byteLength);
  });

  it.each(
    [
      7,
      [],
      [3, ['a'], [''], null, null, null, null],
      [1, ['a'], [''], null, null, null],
      [1, [], [''], null, null, null, null],
      [1, [''], [''], null, null, null, null],
      [1, [5], [''], null, null, null, null],
      [1, ['x'.repeat(257)], [''], null, null, null, null],
      [1, ['a'], [], null, null, null, null],
      [1, ['a', 'b'], ['r', 'r'], [0, 1], null, null, null],
      [1, ['a'], ['r'], [1], null, null, null],
      [1, ['a'], ['r'], [0, 0], null, null, null],
      [1, ['a'], ['r'], null, [0], null, null],
      [1, ['a'], ['r'], null, [1.5], null, null],
      [1, ['a'], ['r'], null, [1_000_001], null, null],
      [1, ['a'], ['r'], null, null, [-1], null],
      [1, ['a'], ['r'], null, null, [8_640_000_000_000_001], null],
      [1, ['a'], ['r'], null, null, null, ['']],
      [1, ['a'], ['r'], null, null, null, 'q'],
      [1, { a: 1 }, ['r'], null, null, null, null],
      [2, 1, 1, 1, [['a', 1, 1, 0]]],
      [3, 1, 1, 1, 4_096, []],
      [3, 1, 1, 1, 4_096, [['a', 1, 1, 2]]],
      [3, 1, 1, 1, 4_096, [['a', 1, 1]]],
      [3, 1, null, 1, 4_096, [['a', 1, 1, 0]]],
      [3, 1, 1, 1, null, [['a', 1, 1, 0]]],
      [3, 1, 1, 1, 4_095, [['a', 1, 1, 0]]],
      [3, 0, 1, 1, 4_096, [['a', 1, 1, 0]]],
      [3, 1, 1, 1, 4_096, [['a', 1, 0, 0]]],
      [4, 0],
      [5],
    ].map((value) => [JSON.stringify(value).slice(0, 60), value] as const),
  )('refuses %s', (_name, value) => {
    expect(() => decodeCommand(new Uint8Array(pack(value)))).toThrow(CommandDecodeError);
  });

  it('refuses lengths that the bytes do not hold, without allocating for them', () => {
    const huge = [0xdd, 0xff, 0xff, 0xff, 0xff];
    expect(() => decodeCommand(Uint8Array.from(huge))).toThrow(CommandDecodeError);
    expect(() => decodeCommand(Uint8Array.from([0x97, 1, ...huge]))).toThrow(CommandDecodeError);
    expect(() => decodeCommand(Uint8Array.from([0x91, 0xdb, 0x7f, 0xff, 0xff, 0xff]))).toThrow(
      CommandDecodeError,
    );
    expect(() => decodeCommand(new Uint8Array(100_000).fill(0x91))).toThrow(CommandDecodeError);
    expect(() => decodeCommand(Uint8Array.from([0x91, 0xa1, 0xff]))).toThrow(/UTF-8/);
    expect(() => decodeCommand(new Uint8Array(0))).toThrow(CommandDecodeError);
  });

  it('makes of random and of damaged bytes a valid command or a CommandDecodeError', () => {
    const good = encodeCommand({
      type: 'allow',
      batch: batchOf([
        { userId: 'ada', cost: 3, timestampMillis: 1_700_000_000_000, requestId: 'q' },
        { userId: 'bøb', ruleId: 'r' },
      ]),
    });
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
