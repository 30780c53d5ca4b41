/** Tests parsing server-sent events from text cut anywhere. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { EventReader } from '../../src/dashboard/event-reader.ts';

describe('a stream of events', () => {
  it('is read the same, in any pieces', () => {
    const text =
      'retry: 2000\n\nevent: a\ndata: {"x":1}\n\n: quiet\n\ndata: one\ndata: two\n\nevent: b\r\ndata:3\r\n\r\n';
    const expected = [
      { name: 'a', data: '{"x":1}' },
      { name: 'message', data: 'one\ntwo' },
      { name: 'b', data: '3' },
    ];
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: text.length - 1 }), { maxLength: 8 }), (cuts) => {
        const places = [0, ...new Set(cuts)].toSorted((a, b) => a - b);
        const reader = new EventReader();
        const events = places.flatMap((at, i) => reader.read(text.slice(at, places[i + 1])));
        expect(events).toEqual(expected);
      }),
    );
  });

  it('is closed if an event never ends', () => {
    const reader = new EventReader();
    expect(() => {
      for (let i = 0; i < 9; i += 1) reader.read('x'.repeat(1 << 20));
    }).toThrow(RangeError);
  });
});
