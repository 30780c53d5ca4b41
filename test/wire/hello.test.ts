/** Tests the frames of the handshake, and that malformed ones are refused. */
import { describe, expect, it } from 'vitest';
import { VERSIONS } from '../../src/api/versions.ts';
import { pack } from '../../src/wire/fields.ts';
import { FrameError } from '../../src/wire/frame.ts';
import {
  decodeHello,
  decodeRefusal,
  decodeWelcome,
  encodeHello,
  encodeRefusal,
  encodeWelcome,
  type Hello,
} from '../../src/wire/hello.ts';

describe('a hello', () => {
  const plain: Hello = { node: 4, incarnation: 'x', target: 1, facts: 'f', speaks: VERSIONS };
  const address = { host: 'h', port: 7 };

  it.each<[Hello]>([
    [plain],
    [{ ...plain, targetIncarnation: 'y' }],
    [{ ...plain, peer: address, http: { host: '::1', port: 65_535 } }],
  ])('is decoded as it was encoded: %j', (hello) => {
    expect(decodeHello(encodeHello(hello))).toEqual(hello);
  });

  it.each([
    [[]],
    [[4, 'x', 1, null]],
    [['4', 'x', 1, null, 'f', null, null, null, null, 1, 1]],
    [[4, 'x', 1, null, 'f', 'h', 0, null, null, 1, 1]],
    [[4, 'x', 1, null, 'f', 'h/', 7, null, null, 1, 1]],
    [[4, 'x', 1, null, 'f', null, null, null, null]],
    [[4, 'x', 1, null, 'f', null, null, null, null, 1]],
    [[4, 'x', 1, null, 'f', null, null, null, null, 2, 1]],
    [[4, 'x', 1, null, 'f', null, null, null, null, 0, 1]],
    [[4, 'x', 1, null, 'f', null, null, null, null, 1, 256]],
    [[4, 'x', 1, null, 'f', null, null, null, null, null, null]],
  ])('of another shape is a FrameError: %j', (value) => {
    expect(() => decodeHello(pack(value))).toThrow(FrameError);
  });

  it('is answered with a welcome or a refusal', () => {
    const welcome = { incarnation: 'x', speaks: VERSIONS };
    expect(decodeWelcome(encodeWelcome(welcome))).toEqual(welcome);
    const refusal = { code: 'removed', text: 'node 4 was removed' } as const;
    expect(decodeRefusal(encodeRefusal(refusal))).toEqual(refusal);
    expect(() => decodeRefusal(pack([99, 'x']))).toThrow(FrameError);
    expect(decodeRefusal(encodeRefusal({ ...refusal, text: 'x'.repeat(9_999) })).text.length).toBe(400);
  });

  it('and its welcome contain the supported versions; further fields are for later versions', () => {
    const fields = [4, 'x', 1, null, 'f', null, null, null, null];
    expect(decodeHello(pack([...fields, 1, 2, 'more'])).speaks).toEqual({ min: 1, max: 2 });
    expect(decodeWelcome(pack(['x', 1, 2, 'more'])).speaks).toEqual({ min: 1, max: 2 });
    expect(decodeRefusal(pack([4, 'why', 'more']))).toEqual({ code: 'otherVersion', text: 'why' });
  });
});
