/**
 * Reads a log of LevelDB the way LevelDB should: tells the end of a write that a power cut interrupted from damage
 * in what was written before it. Works on bytes; reads no files and repairs nothing.
 */

// The format: doc/log_format.md of LevelDB. Blocks of 32 KiB hold fragments: checksum u32, length u16, type u8, data.
export const BLOCK_BYTES = 32 * 1024;
export const HEADER_BYTES = 7;
const FULL = 1;
const FIRST = 2;
const MIDDLE = 3;
const LAST = 4;

/** `torn` and `damaged` say from which byte on the log cannot be read. */
export type LogCondition =
  | { readonly kind: 'intact' }
  | { readonly kind: 'torn'; readonly at: number }
  | { readonly kind: 'damaged'; readonly at: number };

/**
 * For a file whose records are synced one by one, as our batches are, and the edits in a MANIFEST: the next begins only
 * when the one before is synced. So a crash leaves at most one unreadable record, at the end, of which any pages may be
 * there: LevelDB calls such an end "error in middle of record" or "checksum mismatch", as it calls real damage. The
 * difference is what follows. If another record begins after the unreadable one, that one had been synced.
 *
 * Every byte is tried, for a damaged length leads nowhere. So nobody may be able to choose bytes that stand in the file:
 * see mask.ts.
 *
 * @param visit is given each record that can be read
 */
export function inspectLog(log: Buffer, visit?: (record: Buffer) => void): LogCondition {
  const readable = endOfReadable(log, visit);
  const at = nextHeader(readable);
  if (at >= log.length) return { kind: 'intact' };
  return hasRecordAfter(log, at) ? { kind: 'damaged', at } : { kind: 'torn', at };
}

/** Where the last record ends of those that can be read one after another from the beginning. */
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

/** A header never crosses into the next block: what is too short for one is left empty. */
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
  // Only the end of its block breaks a record into fragments.
  if ((type === FIRST || type === MIDDLE) && end !== blockEnd) return false;
  return log.readUInt32LE(at) === maskedCrc32c(log, at + 6, end);
}

const CRC32C_TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit += 1) crc = (crc & 1) === 0 ? crc >>> 1 : (crc >>> 1) ^ 0x82f6_3b78;
  return crc >>> 0;
});
/** For a byte with one, two and three behind it: four bytes at a time take a third of the time. */
const [ONE_BEHIND, TWO_BEHIND, THREE_BEHIND] = (() => {
  const behind = (table: Uint32Array): Uint32Array =>
    table.map((crc) => (crc >>> 8) ^ (CRC32C_TABLE[crc & 0xff] ?? 0));
  const one = behind(CRC32C_TABLE);
  const two = behind(one);
  return [one, two, behind(two)];
})();

/** CRC-32C, disguised the way LevelDB stores it (util/crc32c.h). */
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
