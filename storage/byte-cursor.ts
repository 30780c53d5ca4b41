/** Reads the numbers in LevelDB's own files, one after the other. A read past the end returns undefined. */
export class ByteCursor {
  at: number;
  readonly #bytes: Buffer;

  constructor(bytes: Buffer, at: number) {
    this.#bytes = bytes;
    this.at = at;
  }

  /** Reads a little-endian base-128 number (LevelDB's varint). */
  varint(): number | undefined {
    let value = 0;
    for (let scale = 1; this.at < this.#bytes.length; scale *= 0x80) {
      const byte = this.#bytes[this.at] ?? 0;
      this.at += 1;
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return value;
    }
    return undefined;
  }

  /** Skips a length-prefixed text or key. */
  skipText(): void {
    const length = this.varint() ?? 0;
    this.at += length;
  }
}
