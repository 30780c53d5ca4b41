/**
 * Maps a key to a slot, and a slot to a partition. Slots are computed as in Redis Cluster, so its clients can find
 * the partition of a key themselves. Pure arithmetic: it does not know which node leads a partition.
 */

/** The number of slots; they are 0 to `SLOT_COUNT - 1`. */
export const SLOT_COUNT = 16_384;

const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const POLYNOMIAL = 0x1021;

/** The table for CRC-16/XMODEM: polynomial 0x1021, initial value 0, not reflected. Redis Cluster uses the same. */
const CRC_TABLE = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8;
  for (let bit = 0; bit < 8; bit += 1) crc = (crc & 0x8000) === 0 ? crc << 1 : (crc << 1) ^ POLYNOMIAL;
  return crc;
});

/** The first and the last slot of a range, both included. */
export interface SlotRange {
  readonly first: number;
  readonly last: number;
}

/**
 * The slot of a key: the CRC-16 of its UTF-8 bytes. If the key has a tag, only the tag is hashed, so keys with the
 * same tag have the same slot. The tag is the text between the first `{` and the first `}` after it, unless that is
 * empty. (https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/, "Hash tags")
 *
 * @param key text that survives encoding to UTF-8 and back, see `isBoundedText`
 * @param start where the key begins in the text
 * @example keySlot('{ada}.posts') === keySlot('ada')
 */
export function keySlot(key: string, start = 0): number {
  for (let open = start; open < key.length; open += 1) {
    if (key.charCodeAt(open) !== OPEN_BRACE) continue;
    for (let close = open + 1; close < key.length; close += 1) {
      if (key.charCodeAt(close) !== CLOSE_BRACE) continue;
      return close === open + 1 ? slotOf(key, start, key.length) : slotOf(key, open + 1, close);
    }
    break;
  }
  return slotOf(key, start, key.length);
}

/**
 * The partition of a slot. Each partition has one range of slots, and the sizes of the ranges differ by at most one
 * slot.
 */
export function partitionOfSlot(slot: number, partitionCount: number): number {
  return Math.floor((slot * partitionCount) / SLOT_COUNT);
}

/** The range of slots of a partition. @param partitionCount at most `SLOT_COUNT` */
export function slotRangeOf(partition: number, partitionCount: number): SlotRange {
  const firstOf = (each: number): number => Math.ceil((each * SLOT_COUNT) / partitionCount);
  return { first: firstOf(partition), last: firstOf(partition + 1) - 1 };
}

/**
 * Hashes the UTF-8 bytes of `text` from `start` to `end`. It does not allocate a buffer, because keys are short and
 * mostly ASCII.
 */
function slotOf(text: string, start: number, end: number): number {
  let crc = 0;
  for (let i = start; i < end; i += 1) {
    const unit = text.charCodeAt(i);
    if (unit < 0x80) {
      crc = next(crc, unit);
    } else if (unit < 0x800) {
      crc = next(next(crc, 0xc0 | (unit >> 6)), continuation(unit));
    } else {
      const point = text.codePointAt(i) ?? unit;
      if (point > 0xffff) {
        i += 1;
        crc = next(next(crc, 0xf0 | (point >> 18)), continuation(point >> 12));
      } else crc = next(crc, 0xe0 | (point >> 12));
      crc = next(next(crc, continuation(point >> 6)), continuation(point));
    }
  }
  return crc & (SLOT_COUNT - 1);
}

function continuation(bits: number): number {
  return 0x80 | (bits & 0x3f);
}

function next(crc: number, byte: number): number {
  return ((crc << 8) & 0xffff) ^ (CRC_TABLE[(crc >> 8) ^ byte] ?? 0);
}
