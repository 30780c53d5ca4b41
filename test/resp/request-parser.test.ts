/** The parser returns the same commands for any cuts of the bytes, and refuses invalid input as Redis does. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ARGUMENT_BYTES_MAX, ARGUMENTS_MAX, RequestParser } from '../../src/resp/request-parser.ts';
import { INLINE_BYTES_MAX } from '../../src/resp/inline-request.ts';
import { encodeCommand } from './fixtures.ts';

interface Seen {
  readonly commands: string[][];
  readonly fault: string;
}

/** Arguments as hex, so that no byte is lost. @param cuts positions at which the stream is cut, in any order */
function parse(stream: Buffer, cuts: readonly number[]): Seen {
  const parser = new RequestParser();
  const commands: string[][] = [];
  const ends = [...new Set(cuts.filter((cut) => cut > 0 && cut < stream.length)), stream.length].sort(
    (a, b) => a - b,
  );
  let start = 0;
  for (const end of ends) {
    // As from a socket, which reuses its buffer.
    const chunk = Buffer.from(stream.subarray(start, end));
    start = end;
    parser.push(chunk);
    for (let parsed = parser.next(); parsed !== 'unfinished'; parsed = parser.next()) {
      if (parsed === 'broken') return { commands, fault: parser.fault };
      const { count } = parser.arguments;
      commands.push(Array.from({ length: count }, (_, i) => parser.arguments.bytes(i).toString('hex')));
    }
    chunk.fill(0x2a);
  }
  return { commands, fault: parser.fault };
}

function texts(stream: string, cuts: readonly number[] = []): string[][] {
  const { commands, fault } = parse(Buffer.from(stream), cuts);
  expect(fault).toBe('');
  return commands.map((args) => args.map((hex) => Buffer.from(hex, 'hex').toString()));
}

function faultOf(stream: string): string {
  const whole = parse(Buffer.from(stream), []);
  const everywhere = Array.from({ length: stream.length }, (_, i) => i);
  expect(parse(Buffer.from(stream), everywhere)).toEqual(whole);
  return whole.fault;
}

const bytes = fc.uint8Array({ maxLength: 40 }).map((array) => Buffer.from(array));
const command = fc.array(bytes, { minLength: 1, maxLength: 6 });
const cuts = fc.array(fc.nat(600), { maxLength: 30 });

describe('arrays of bulk strings', () => {
  it('are the same commands for any cuts of the stream', () => {
    fc.assert(
      fc.property(fc.array(command, { maxLength: 8 }), cuts, (commands, cuts) => {
        const stream = Buffer.concat(commands.map((args) => encodeCommand(...args)));
        const expected = commands.map((args) => args.map((arg) => arg.toString('hex')));
        expect(parse(stream, cuts)).toEqual({ commands: expected, fault: '' });
      }),
    );
  });

  it('may be mixed with inline commands', () => {
    const stream = 'PING\r\n*1\r\n$4\r\nPING\r\n\r\nECHO "a b"\n';
    const expected = [['PING'], ['PING'], ['ECHO', 'a b']];
    for (let cut = 0; cut <= stream.length; cut += 1) expect(texts(stream, [cut])).toEqual(expected);
  });

  it('of no arguments are no commands', () => {
    expect(texts('*0\r\n*-1\r\n*1\r\n$4\r\nPING\r\n')).toEqual([['PING']]);
  });

  it('have as many arguments, and as long ones, as the bounds allow', () => {
    const longest = Array.from({ length: ARGUMENTS_MAX }, () => 'x'.repeat(ARGUMENT_BYTES_MAX));
    const stream = Buffer.concat([encodeCommand(...longest), encodeCommand('PING')]);
    const everySo = Array.from({ length: Math.ceil(stream.length / 1_000) }, (_, i) => i * 1_000);
    expect(parse(stream, everySo)).toEqual(parse(stream, []));
    expect(parse(stream, everySo).commands.map((args) => args.length)).toEqual([ARGUMENTS_MAX, 1]);
  });

  it.each([
    ['*1x\r\n', 'invalid multibulk length'],
    ['*+1\r\n', 'invalid multibulk length'],
    ['*01\r\n', 'invalid multibulk length'],
    ['*\r\n', 'invalid multibulk length'],
    ['*-\r\n', 'invalid multibulk length'],
    ['*1\rx', 'invalid multibulk length'],
    [`*${ARGUMENTS_MAX + 1}\r\n`, 'invalid multibulk length'],
    ['*99999999999999999999999\r\n', 'invalid multibulk length'],
    [`*${'1'.repeat(80)}`, 'too big mbulk count string'],
    ['*1\r\nPING\r\n', "expected '$', got 'P'"],
    ['*1\r\n\u0001', "expected '$', got '?'"],
    ['*1\r\n$-1\r\n', 'invalid bulk length'],
    ['*1\r\n$x\r\n', 'invalid bulk length'],
    ['*1\r\n$-0\r\n', 'invalid bulk length'],
    [`*1\r\n$${ARGUMENT_BYTES_MAX + 1}\r\n`, 'invalid bulk length'],
    [`*1\r\n$${'1'.repeat(80)}`, 'too big bulk count string'],
    ['*1\r\n$4\r\nPINGxx', 'expected CRLF after a bulk string'],
    ['x'.repeat(INLINE_BYTES_MAX + 1), 'too big inline request'],
    [`${'x'.repeat(INLINE_BYTES_MAX + 1)}\n`, 'too big inline request'],
    ['x '.repeat(ARGUMENTS_MAX + 1).concat('\n'), 'too big inline request'],
    ['ECHO "a\n', 'unbalanced quotes in request'],
  ])('or inline commands that are malformed are refused: %j', (stream, fault) => {
    expect(faultOf(stream)).toBe(`Protocol error: ${fault}`);
  });

  it('that come before malformed bytes are commands', () => {
    const { commands, fault } = parse(Buffer.from('PING\r\n*1\r\nx'), []);
    expect(commands).toHaveLength(1);
    expect(fault).toBe("Protocol error: expected '$', got 'x'");
  });

  it('give the same result for any cuts of random bytes', () => {
    const pieces = ['*', '$', '1', '2', '-', '\r\n', '\n', 'a', '"', "'", '\\', ' ', '\u0000'];
    const stream = fc.array(fc.constantFrom(...pieces), { maxLength: 60 }).map((list) => list.join(''));
    fc.assert(
      fc.property(stream, cuts, (stream, cuts) => {
        expect(parse(Buffer.from(stream), cuts)).toEqual(parse(Buffer.from(stream), []));
      }),
    );
  });
});

describe('an inline command', () => {
  it.each([
    ['PING', ['PING']],
    ['  echo \t x  ', ['echo', 'x']],
    ['a "b c" d', ['a', 'b c', 'd']],
    ['a "" b', ['a', '', 'b']],
    [String.raw`a "\x41\n\t\"\q\x4"`, ['a', 'A\n\t"qx4']],
    [String.raw`a 'b \' \n'`, ['a', String.raw`b ' \n`]],
    ['a b"c d"', ['a', 'bc d']],
    [`a ${'x'.repeat(INLINE_BYTES_MAX - 2)}`, ['a', 'x'.repeat(INLINE_BYTES_MAX - 2)]],
  ])('is split as Redis does: %s', (line, args) => {
    expect(texts(`${line}\n`)).toEqual([args]);
  });

  it.each(['"a', "'a", '"a"b', "'a'b", '"a\\'])('with quotes that do not match is refused: %s', (line) => {
    expect(faultOf(`${line}\n`)).toBe('Protocol error: unbalanced quotes in request');
  });
});

function argument(value: Buffer | string): RequestParser['arguments'] {
  const parser = new RequestParser();
  parser.push(encodeCommand(value));
  expect(parser.next()).toBe('command');
  return parser.arguments;
}

describe('an argument', () => {
  it('is text if it is UTF-8, and none otherwise', () => {
    for (const text of ['', 'ada', 'Ada Lovelace', 'žluť', '€', '😀'])
      expect(argument(text).text(0)).toBe(text);
    for (const hex of ['ff', 'c3', 'c080', 'eda080', 'f4908080', '61e282'])
      expect(argument(Buffer.from(hex, 'hex')).text(0)).toBeUndefined();
  });

  it.each([
    ['0', 0],
    ['7', 7],
    ['-7', -7],
    ['9007199254740991', Number.MAX_SAFE_INTEGER],
  ])('is the integer %s', (text, value) => {
    expect(argument(text).integer(0)).toBe(value);
  });

  it.each(['', '-', '+1', ' 1', '1 ', '01', '-0', '1.0', '1e3', 'x', '9007199254740993', '9'.repeat(30)])(
    'is no integer: %j',
    (text) => {
      expect(argument(text).integer(0)).toBeNaN();
    },
  );

  it('is compared with a name without regard to capitals', () => {
    expect(argument('cl.throttle').is(0, 'CL.THROTTLE')).toBe(true);
    expect(argument('CL.THROTTLe').is(0, 'CL.THROTTLE')).toBe(true);
    expect(argument('cl.throttlx').is(0, 'CL.THROTTLE')).toBe(false);
    expect(argument('cl').is(0, 'CL.THROTTLE')).toBe(false);
    expect(argument('cl').is(1, '')).toBe(false);
  });
});
