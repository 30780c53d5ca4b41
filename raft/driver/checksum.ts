/** CRC-32 (IEEE), a piece at a time. Written out because raft/ imports no module; zlib's agrees with it. */

/** Row 0 moves the checksum on by one byte, row k by one byte with k more to come: four bytes a step below. */
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

/** The checksum of everything that `before` is the checksum of, followed by `data`; `before` is 0 at the start. */
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
