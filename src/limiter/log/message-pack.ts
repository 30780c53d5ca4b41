/**
 * Checks that bytes are exactly one MessagePack value of the few kinds a command is made of, before a decoder
 * is let near them: a decoder believes lengths, and a damaged length can make it allocate gigabytes.
 */

const DEPTH_MAX = 4;

const strictUtf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Returns what is wrong with `bytes`, or undefined when they hold exactly one value made of nil, unsigned
 * integers up to 32 bits, 64-bit floats, valid UTF-8 text and arrays nested at most four deep.
 */
export function messagePackProblem(bytes: Uint8Array): string | undefined {
  const scan = new Scan(bytes);
  const problem = scan.value(0);
  if (problem !== undefined) return problem;
  return scan.position === bytes.length ? undefined : `${bytes.length - scan.position} bytes left over`;
}

class Scan {
  position = 0;
  readonly #bytes: Uint8Array;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  value(depth: number): string | undefined {
    const token = this.#bytes[this.position];
    if (token === undefined) return 'ends too early';
    this.position += 1;
    if (token <= 0x7f || token === 0xc0) return undefined;
    if (token >= 0xa0 && token <= 0xbf) return this.#text(token & 0x1f);
    if (token >= 0x90 && token <= 0x9f) return this.#array(token & 0x0f, depth);
    switch (token) {
      case 0xcc:
        return this.#skip(1);
      case 0xcd:
        return this.#skip(2);
      case 0xce:
        return this.#skip(4);
      case 0xcb:
        return this.#skip(8);
      case 0xd9:
        return this.#text(this.#length(1));
      case 0xda:
        return this.#text(this.#length(2));
      case 0xdb:
        return this.#text(this.#length(4));
      case 0xdc:
        return this.#array(this.#length(2), depth);
      case 0xdd:
        return this.#array(this.#length(4), depth);
      default:
        return `unexpected token 0x${token.toString(16)}`;
    }
  }

  /** Reads a big-endian length; one cut off by the end is read as too long. */
  #length(size: number): number {
    let length = 0;
    for (let i = 0; i < size; i += 1) length = length * 256 + (this.#bytes[this.position + i] ?? 255);
    this.position += size;
    return length;
  }

  #skip(size: number): string | undefined {
    this.position += size;
    return this.position <= this.#bytes.length ? undefined : 'ends too early';
  }

  #text(length: number): string | undefined {
    const start = this.position;
    const problem = this.#skip(length);
    if (problem !== undefined) return problem;
    for (let i = start; i < this.position; i += 1) {
      if (this.#bytes[i]! < 0x80) continue;
      try {
        strictUtf8.decode(this.#bytes.subarray(start, this.position));
        return undefined;
      } catch {
        return 'text is not UTF-8';
      }
    }
    return undefined;
  }

  #array(length: number, depth: number): string | undefined {
    if (depth >= DEPTH_MAX) return 'nested too deeply';
    if (length > this.#bytes.length - this.position) return 'ends too early';
    for (let i = 0; i < length; i += 1) {
      const problem = this.value(depth + 1);
      if (problem !== undefined) return problem;
    }
    return undefined;
  }
}
