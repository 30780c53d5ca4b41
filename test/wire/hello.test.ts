/** What a hello, a welcome and a refusal say, and what is none. */
import { describe, expect, it } from 'vitest';
import { UNSAID, VERSIONS } from '../../src/api/versions.ts';
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
  ])('arrives as it was sent: %j', (hello) => {
    expect(decodeHello(encodeHello(hello))).toEqual(hello);
  });

  it.each([
    [[]],
    [[4, 'x', 1, null]],
    [['4', 'x', 1, null, 'f', null, null, null, null]],
    [[4, 'x', 1, null, 'f', 'h', 0, null, null]],
    [[4, 'x', 1, null, 'f', 'h/', 7, null, null]],
    [[4, 'x', 1, null, 'f', null, null, null, null, 12]],
    [[4, 'x', 1, null, 'f', null, null, null, null, 13, 12]],
    [[4, 'x', 1, null, 'f', null, null, null, null, 0, 12]],
    [[4, 'x', 1, null, 'f', null, null, null, null, 12, 256]],
    [[4, 'x', 1, null, 'f', null, null, null, null, null, null]],
  ])('of another shape is a FrameError: %j', (value) => {
    expect(() => decodeHello(pack(value))).toThrow(FrameError);
  });

  it('is answered with a welcome or a refusal', () => {
    const welcome = { incarnation: 'x', speaks: VERSIONS };
    expect(decodeWelcome(encodeWelcome(welcome))).toEqual(welcome);
    const refusal = { code: 'removed', text: 'node 4 was removed' } as const;
    expect(decodeRefusal(encodeRefusal(refusal, VERSIONS))).toEqual(refusal);
    expect(() => decodeRefusal(pack([99, 'x']))).toThrow(FrameError);
    expect(decodeRefusal(encodeRefusal({ ...refusal, text: 'x'.repeat(9_999) }, VERSIONS)).text.length).toBe(
      400,
    );
  });

  it('of a node that says nothing of versions is of one that speaks 12 alone; what follows is for later ones', () => {
    const fields = [4, 'x', 1, null, 'f', null, null, null, null];
    expect(decodeHello(pack(fields)).speaks).toEqual({ min: 12, max: 12 });
    expect(decodeHello(pack([...fields, 12, 13, 'more'])).speaks).toEqual({ min: 12, max: 13 });
    expect(decodeWelcome(pack(['x']))).toEqual({ incarnation: 'x', speaks: { min: 12, max: 12 } });
  });

  it('of another version is refused in words that version 12 can read', () => {
    const refusal = { code: 'otherVersion', text: 'why' } as const;
    expect(decodeRefusal(encodeRefusal(refusal, VERSIONS))).toEqual(refusal);
    expect(decodeRefusal(encodeRefusal(refusal, UNSAID))).toEqual({ code: 'otherFacts', text: 'why' });
  });
});
