/** ByteReader reads the bytes of ByteWriter, and refuses bytes that are cut off, out of bounds or missing. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ByteReader } from '../../src/bytes/byte-reader.ts';
import { ByteWriter } from '../../src/bytes/byte-writer.ts';

class Refusal extends Error {}

function reader(bytes: Uint8Array): ByteReader {
  return new ByteReader((problem) => new Refusal(problem), bytes);
}

function bytesOf(write: (out: ByteWriter) => void): Uint8Array {
  const out = new ByteWriter();
  write(out);
  return out.take();
}

const safe = fc.oneof(fc.nat(300), fc.maxSafeNat());
const text = fc
  .string({ unit: 'grapheme', maxLength: 40 })
  .filter((each) => !/^\ufeff|\p{Surrogate}/u.test(each));
const VALUES = fc.oneof(
  fc.record({ type: fc.constant('byte' as const), value: fc.nat(255) }),
  fc.record({ type: fc.constant('flag' as const), value: fc.boolean() }),
  fc.record({ type: fc.constant('integer' as const), value: safe }),
  fc.record({ type: fc.constant('integers' as const), value: fc.array(safe, { maxLength: 5 }) }),
  fc.record({ type: fc.constant('signed' as const), value: fc.maxSafeInteger() }),
  fc.record({ type: fc.constant('word' as const), value: fc.nat(0xffff_ffff) }),
  fc.record({ type: fc.constant('text' as const), value: text }),
  fc.record({ type: fc.constant('byteString' as const), value: fc.uint8Array({ maxLength: 200 }) }),
);
type Value = typeof VALUES extends fc.Arbitrary<infer T> ? T : never;

function write(out: ByteWriter, { type, value }: Value): void {
  out[type](value as never);
}

function read(input: ByteReader, { type }: Value): unknown {
  switch (type) {
    case 'byte':
    case 'word':
      return input[type]();
    case 'signed':
      return input.signed('it', Number.MAX_SAFE_INTEGER);
    case 'flag':
    case 'integer':
    case 'integers':
    case 'text':
    case 'byteString':
      return input[type]('it');
  }
}

describe('bytes', () => {
  it('are read as they were written, in any number', () => {
    fc.assert(
      fc.property(fc.array(VALUES, { minLength: 1, maxLength: 300 }), (values) => {
        const input = reader(bytesOf((out) => values.forEach((value) => write(out, value))));
        for (const value of values) expect(read(input, value)).toEqual(value.value);
        expect(input.isAtEnd).toBe(true);
      }),
      { numRuns: 60 },
    );
  });

  it('that end too early are refused, cut at any byte', () => {
    fc.assert(
      fc.property(VALUES, (value) => {
        const bytes = bytesOf((out) => write(out, value));
        for (let end = 0; end < bytes.length; end += 1)
          expect(() => read(reader(bytes.subarray(0, end)), value)).toThrow(Refusal);
      }),
      { numRuns: 100 },
    );
  });

  it.each<[string, readonly number[], (input: ByteReader) => unknown, string]>([
    ['an integer below its bound', [1], (input) => input.integer('it', 2, 9), 'it is 1, not from 2 to 9'],
    ['an integer above its bound', [10], (input) => input.integer('it', 2, 9), 'it is 10, not from 2 to 9'],
    ['no safe integer', [255, 255, 255, 255, 255, 255, 255, 127], (input) => input.integer('it'), 'it is'],
    [
      'an integer without an end',
      Array<number>(9).fill(128),
      (input) => input.integer('it'),
      'it has more than 8 bytes',
    ],
    ['a flag of 2', [2], (input) => input.flag('it'), 'it is neither 0 nor 1'],
    ['a negative zero', [1, 0], (input) => input.signed('it', 9), 'it is 0'],
    ['an unknown name', [2], (input) => input.oneOf(['a', 'b'], 'it'), 'it is not one of a, b'],
    [
      'a count that exceeds the bytes',
      [3, 1, 1],
      (input) => input.count('it'),
      'it: 3 do not fit into what is left',
    ],
    ['a text that is too short', [0], (input) => input.text('it', 1, 5), 'it is 0'],
    ['a text that is too long', [2, 65, 66], (input) => input.text('it', 1, 1), 'it is 2'],
    ['a text that is no UTF-8', [2, 0xc3, 0x28], (input) => input.text('it'), 'it is not UTF-8'],
    ['a byte string with its end elsewhere', [3, 1, 2], (input) => input.byteView('it'), 'it ends too early'],
  ])('are refused as %s', (_, bytes, asked, problem) => {
    expect(() => asked(reader(Uint8Array.from(bytes)))).toThrow(new RegExp(`^${problem}`));
  });

  it.each(['a\ud800', '\ufeffä', 'ä'.repeat(6), 'x'.repeat(11)])(
    'refuse a text that would be read as another, or is too long: %j',
    (value) => {
      const out = new ByteWriter();
      out.byte(7);
      expect(() => out.text(value, 10)).toThrow(RangeError);
      expect(out.take()).toEqual(Uint8Array.of(7));
    },
  );

  it('that the writer returns are a copy', () => {
    const out = new ByteWriter();
    out.integer(1);
    const first = out.take();
    out.integer(2);
    expect([first, out.take(), out.length]).toEqual([Uint8Array.of(1), Uint8Array.of(2), 0]);
  });

  it('can be truncated, and the writer says when it is full', () => {
    const out = new ByteWriter(3);
    out.integer(1);
    const before = out.length;
    out.text('ada');
    expect(out.isFull).toBe(true);
    out.truncate(before);
    expect([out.isFull, out.written]).toEqual([false, Uint8Array.of(1)]);
    out.clear();
    expect(out.length).toBe(0);
  });
});
