/** CRC-32 (IEEE), a piece at a time. Written out because raft/ imports no module; zlib's agrees with it. */

const TABLE = new Uint32Array(256);
for (let byte = 0; byte < 256; byte += 1) {
  let value = byte;
  for (let bit = 0; bit < 8; bit += 1) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  TABLE[byte] = value;
}

/** The checksum of everything that `before` is the checksum of, followed by `data`; `before` is 0 at the start. */
export function crc32(data: Uint8Array, before: number): number {
  let crc = ~before;
  for (const byte of data) crc = (crc >>> 8) ^ (TABLE[(crc ^ byte) & 0xff] ?? 0);
  return ~crc >>> 0;
}
