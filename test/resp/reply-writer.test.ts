/** Encoded answers can be decoded, in both versions of the protocol. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { failed, mapOf, type Reply, setOf, simple } from '../../src/resp/reply.ts';
import { ReplyWriter, type RespVersion } from '../../src/resp/reply-writer.ts';
import { decodeReplies } from './decode-replies.ts';

function written(reply: Reply, version: RespVersion): string {
  const writer = new ReplyWriter();
  writer.reply(reply, version);
  return writer.take().toString();
}

describe('an answer', () => {
  it.each<[Reply, string, string?]>([
    [0, ':0\r\n'],
    [-12, ':-12\r\n'],
    [10, ':10\r\n'],
    [Number.MAX_SAFE_INTEGER, ':9007199254740991\r\n'],
    [Number.MIN_SAFE_INTEGER, ':-9007199254740991\r\n'],
    ['', '$0\r\n\r\n'],
    ['a\r\nb', '$4\r\na\r\nb\r\n'],
    ['€', '$3\r\n€\r\n'],
    [null, '$-1\r\n', '_\r\n'],
    [simple('OK'), '+OK\r\n'],
    [failed('no\r\nway €'), '-ERR no way €\r\n'],
    [[], '*0\r\n'],
    [[1, ['a']], '*2\r\n:1\r\n*1\r\n$1\r\na\r\n'],
    [mapOf({ a: 1 }), '*2\r\n$1\r\na\r\n:1\r\n', '%1\r\n$1\r\na\r\n:1\r\n'],
    [setOf([1]), '*1\r\n:1\r\n', '~1\r\n:1\r\n'],
  ])('is written in the form of its version: %j', (reply, resp2, resp3 = resp2) => {
    expect(written(reply, 2)).toBe(resp2);
    expect(written(reply, 3)).toBe(resp3);
  });

  it('of five integers is an array of them', () => {
    const writer = new ReplyWriter();
    fc.assert(
      fc.property(fc.tuple(...Array.from({ length: 5 }, () => fc.maxSafeInteger())), (five) => {
        const [a = 0, b = 0, c = 0, d = 0, e = 0] = five;
        writer.fiveIntegers(a, b, c, d, e);
        // `toEqual` distinguishes 0 from -0, which has no encoding.
        expect(decodeReplies(writer.take())).toEqual([five.map((each) => each + 0)]);
      }),
    );
  });

  it('does not change when more is written', () => {
    const writer = new ReplyWriter();
    writer.reply('first', 2);
    const first = writer.take();
    writer.reply('other', 2);
    writer.take();
    expect(first.toString()).toBe('$5\r\nfirst\r\n');
  });

  it('may be longer than all earlier ones together', () => {
    const writer = new ReplyWriter();
    const long = 'x'.repeat(3_000_000);
    for (const text of ['a', long, 'b']) writer.reply(text, 3);
    writer.error(`ERR ${long}`);
    writer.raw(Buffer.from(':1\r\n'));
    expect(decodeReplies(writer.take())).toEqual(['a', long, 'b', { error: `ERR ${long}` }, 1]);
    expect(writer.length).toBe(0);
  });
});
