/** The bytes of an entry, one value after the other, read without the code of the product. */
export class EntryBytes {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(data: Uint8Array) {
    this.#bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  }

  get length(): number {
    return this.#bytes.length;
  }

  readonly byte = (): number => this.#bytes.readUInt8(this.#at++);

  readonly integer = (): number => {
    const value = this.byte();
    return value < 128 ? value : value - 128 + 128 * this.integer();
  };

  readonly text = (): string => {
    const length = this.integer();
    this.#at += length;
    return this.#bytes.toString('utf8', this.#at - length, this.#at);
  };
}
