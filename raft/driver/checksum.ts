/** CRC-32 (IEEE 802.3, the same as zlib's), computed piece by piece. Own code because raft/ imports no modules. */

/** Slicing by four. Row 0 advances the checksum by one byte; row k by one byte that k more bytes follow. */
const ROWS = 4;
const TABLE = new Int32Array(ROWS * 256);
for (let byte = 0; byte < 256; byte += 1) {
  let value = byte;
  for (let bit = 0; bit < 8; bit += 1) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  TABLE[byte] = value;
}
for (let at = 256; at < TABLE.length; at += 1) {
  const before = entry(at - 256);
  TABLE[at] = (before >>> 8) ^ entry(before & 0xff);
}

function entry(at: number): number {
  return TABLE[at] as number;
}

/**
 * Continues a checksum: returns the checksum of the bytes that gave `before`, followed by `data`. Start with `before` =
 * 0.
 */
export function crc32(data: Uint8Array, before: number): number {
  let crc = ~before;
  let at = 0;
  const byteAt = (index: number): number => data[index] as number;
  for (; at + 4 <= data.length; at += 4) {
    crc ^= byteAt(at) | (byteAt(at + 1) << 8) | (byteAt(at + 2) << 16) | (byteAt(at + 3) << 24);
    crc =
      entry(768 + (crc & 0xff)) ^
      entry(512 + ((crc >>> 8) & 0xff)) ^
      entry(256 + ((crc >>> 16) & 0xff)) ^
      entry(crc >>> 24);
  }
  for (; at < data.length; at += 1) crc = (crc >>> 8) ^ entry((crc ^ byteAt(at)) & 0xff);
  return ~crc >>> 0;
}
