/**
 * Reads a log of LevelDB. Distinguishes an incomplete last write, which a power cut leaves, from damage in earlier
 * data. Works on bytes: reads no files and repairs nothing.
 */

/**
 * The size of a block. LevelDB's doc/log_format.md describes the format: blocks contain fragments of checksum u32,
 * length u16, type u8 and data.
 */
export const BLOCK_BYTES = 32 * 1024;
/** The length of the header of a fragment. */
export const HEADER_BYTES = 7;
const FULL = 1;
const FIRST = 2;
const MIDDLE = 3;
const LAST = 4;

/** The condition of a log. `at` is the first byte that cannot be read. */
export type LogCondition =
  | { readonly kind: 'intact' }
  | { readonly kind: 'torn'; readonly at: number }
  | { readonly kind: 'damaged'; readonly at: number };

/**
 * Inspects a file whose records are synced one by one, such as our batches or the edits in a MANIFEST: each record
 * begins only after the previous one was synced. A crash therefore leaves at most one unreadable record, at the end,
 * with any of its pages missing. LevelDB reports such an end and real damage with the same words ("error in middle of
 * record", "checksum mismatch"). The difference is what follows: if another record begins after the unreadable one, the
 * unreadable one had been synced, so it is damage.
 *
 * The search tries every byte, because a damaged length leads nowhere. So no client may be able to choose the bytes in
 * the file: see mask.ts.
 *
 * @param visit receives each readable record
 */
export function inspectLog(log: Buffer, visit?: (record: Buffer) => void): LogCondition {
  const readable = endOfReadable(log, visit);
  const at = nextHeader(readable);
  if (at >= log.length) return { kind: 'intact' };
  return hasRecordAfter(log, at) ? { kind: 'damaged', at } : { kind: 'torn', at };
}

/** The end of the last record that can be read when reading from the beginning. */
function endOfReadable(log: Buffer, visit?: (record: Buffer) => void): number {
  let end = 0;
  let inRecord = false;
  let parts: Buffer[] = [];
  for (let at = 0; isFragment(log, at);) {
    const type = log.readUInt8(at + 6);
    if ((type === MIDDLE || type === LAST) !== inRecord) return end;
    const next = at + HEADER_BYTES + log.readUInt16LE(at + 4);
    if (!inRecord) parts = [];
    parts.push(log.subarray(at + HEADER_BYTES, next));
    inRecord = type === FIRST || type === MIDDLE;
    if (!inRecord) {
      end = next;
      visit?.(Buffer.concat(parts));
    }
    at = nextHeader(next);
  }
  return end;
}

/** A header never crosses a block boundary: a rest of a block that is too short for one stays empty. */
function nextHeader(at: number): number {
  const left = BLOCK_BYTES - (at % BLOCK_BYTES);
  return left < HEADER_BYTES ? at + left : at;
}

/** Whether a record begins anywhere after `at`. */
function hasRecordAfter(log: Buffer, at: number): boolean {
  for (let start = at + 1; start + HEADER_BYTES <= log.length; start += 1) {
    const type = log[start + 6];
    if ((type === FULL || type === FIRST) && isFragment(log, start)) return true;
  }
  return false;
}

function isFragment(log: Buffer, at: number): boolean {
  if (at + HEADER_BYTES > log.length) return false;
  const type = log.readUInt8(at + 6);
  const end = at + HEADER_BYTES + log.readUInt16LE(at + 4);
  const blockEnd = at - (at % BLOCK_BYTES) + BLOCK_BYTES;
  if (type < FULL || type > LAST || end > blockEnd || end > log.length) return false;
  // A record is split into fragments only at the end of a block.
  if ((type === FIRST || type === MIDDLE) && end !== blockEnd) return false;
  return log.readUInt32LE(at) === maskedCrc32c(log, at + 6, end);
}

const CRC32C_TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit += 1) crc = (crc & 1) === 0 ? crc >>> 1 : (crc >>> 1) ^ 0x82f6_3b78;
  return crc >>> 0;
});
/** Tables for a byte that one, two or three more bytes follow. Four bytes at a time take a third of the time. */
const [ONE_BEHIND, TWO_BEHIND, THREE_BEHIND] = (() => {
  const behind = (table: Uint32Array): Uint32Array =>
    table.map((crc) => (crc >>> 8) ^ (CRC32C_TABLE[crc & 0xff] ?? 0));
  const one = behind(CRC32C_TABLE);
  const two = behind(one);
  return [one, two, behind(two)];
})();

/** CRC-32C of bytes [from, to), masked the way LevelDB stores it (util/crc32c.h). */
export function maskedCrc32c(bytes: Buffer, from: number, to: number): number {
  let crc = -1;
  let at = from;
  for (; at + 4 <= to; at += 4) {
    crc ^= bytes.readInt32LE(at);
    const pair = (THREE_BEHIND[crc & 0xff] ?? 0) ^ (TWO_BEHIND[(crc >>> 8) & 0xff] ?? 0);
    crc = pair ^ (ONE_BEHIND[(crc >>> 16) & 0xff] ?? 0) ^ (CRC32C_TABLE[crc >>> 24] ?? 0);
  }
  for (; at < to; at += 1) crc = (CRC32C_TABLE[(crc ^ (bytes[at] ?? 0)) & 0xff] ?? 0) ^ (crc >>> 8);
  crc = ~crc;
  return (((crc >>> 15) | (crc << 17)) + 0xa282_ead8) >>> 0;
}
