/** Slots equal those of Redis Cluster for every key, and every slot belongs to one partition. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { keySlot, partitionOfSlot, SLOT_COUNT, slotRangeOf } from '../../src/api/key-slot.ts';

/** CRC-16/XMODEM bit by bit, over the UTF-8 bytes that Node encodes. */
function naiveSlot(text: string): number {
  let crc = 0;
  for (const byte of Buffer.from(text)) {
    for (let bit = 7; bit >= 0; bit -= 1) {
      const isOut = ((crc >> 15) & 1) !== ((byte >> bit) & 1);
      crc = ((crc << 1) & 0xffff) ^ (isOut ? 0x1021 : 0);
    }
  }
  return crc % SLOT_COUNT;
}

/** All characters except surrogates, which have no UTF-8 form, and the brace, which would begin a tag. */
const codePoint = fc
  .oneof(fc.nat(0x7f), fc.nat(0x7ff), fc.nat(0xffff), fc.nat(0x10_ffff))
  .filter((point) => (point < 0xd800 || point > 0xdfff) && point !== 0x7b);

describe('the slot of a key', () => {
  // The answers of Redis to `CLUSTER KEYSLOT`. The first is the published check value of the CRC, 0x31c3.
  it.each([
    ['123456789', 0x31c3],
    ['foo', 12_182],
    ['bar', 5_061],
    ['', 0],
  ])('of %j is %i', (key, slot) => {
    expect(keySlot(key)).toBe(slot);
  });

  it('is computed from its UTF-8 bytes', () => {
    fc.assert(
      fc.property(fc.array(codePoint, { maxLength: 40 }), (points) => {
        const key = String.fromCodePoint(...points);
        expect(keySlot(key)).toBe(naiveSlot(key));
      }),
    );
  });

  it.each([
    ['{user1000}.following', 'user1000'],
    ['foo{bar}{zap}', 'bar'],
    ['foo{{bar}}zap', '{bar'],
    ['a{ž😀}', 'ž😀'],
  ])('of %j is the one of its tag %j', (key, tag) => {
    expect(keySlot(key)).toBe(naiveSlot(tag));
  });

  it.each(['foo{}{bar}', '{}', 'foo{bar', 'foo}bar{', '}{'])(
    'of %j is computed from the whole key',
    (key) => {
      expect(keySlot(key)).toBe(naiveSlot(key));
    },
  );
});

describe('partitions', () => {
  it.each([1, 2, 3, 16, 100, 1_000, 1_024, 4_096, SLOT_COUNT])(
    '%i partitions have ranges of slots whose sizes differ by at most one',
    (count) => {
      const sizes = new Set<number>();
      let next = 0;
      for (let partition = 0; partition < count; partition += 1) {
        const { first, last } = slotRangeOf(partition, count);
        if (first !== next) throw new Error(`slot ${next} has no partition, or two`);
        for (const slot of [first, last]) {
          if (partitionOfSlot(slot, count) !== partition)
            throw new Error(`slot ${slot} has another partition`);
        }
        sizes.add(last - first + 1);
        next = last + 1;
      }
      expect(next).toBe(SLOT_COUNT);
      expect(Math.max(...sizes) - Math.min(...sizes)).toBeLessThanOrEqual(1);
    },
  );
});
