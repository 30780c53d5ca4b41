/** Mutates bytes at random from a seed, as accidents and attackers do. It knows no format. */
import type { RandomBelow } from '../../raft/core-state.ts';

/** Values at which encodings change their width, and arithmetic its sign. */
const INTEGERS = [
  0,
  1,
  2,
  7,
  8,
  15,
  16,
  31,
  32,
  63,
  64,
  127,
  128,
  255,
  256,
  1_023,
  4_095,
  4_096,
  4_097,
  16_383,
  16_384,
  32_767,
  32_768,
  65_535,
  65_536,
  1_000_000,
  1_000_001,
  2 ** 24,
  2 ** 25 - 1,
  2 ** 31 - 1,
  2 ** 31,
  2 ** 32 - 1,
  2 ** 32,
  2 ** 48,
  2 ** 53 - 1,
  2 ** 53,
] as const;
const DECIMALS = [...INTEGERS.map(String), '-1', '-0', '1e9', '1e400', '0.5', '007', '99999999999999999999'];
/** The largest length of a piece that is cut, repeated or put in. */
const PIECE_BYTES_MAX = 64;
const CHANGES_MAX = 6;
const REPEATS_MAX = 40;

interface Chance {
  readonly below: RandomBelow;
  /** Another input to copy pieces from. */
  readonly other: Uint8Array;
  readonly words: readonly string[];
}

type Change = (bytes: Buffer, chance: Chance) => Buffer;

/**
 * @param other another input of the same parser
 * @param bytesMax the longest result; what is beyond is cut off
 */
export function mutate(input: Uint8Array, chance: Chance, bytesMax: number): Buffer {
  const { below } = chance;
  let bytes: Buffer = Buffer.from(input);
  // Usually few: an input with little damage gets furthest into the parser.
  for (let left = 1 + Math.min(below(CHANGES_MAX), below(CHANGES_MAX)); left > 0; left -= 1) {
    const change = CHANGES[below(CHANGES.length)];
    if (change !== undefined) bytes = change(bytes, chance);
  }
  return bytes.subarray(0, bytesMax);
}

const CHANGES: readonly Change[] = [
  flipBit,
  setByte,
  cut,
  cutEnd,
  repeat,
  splice,
  crossOver,
  insertBytes,
  overwriteInteger,
  insertInteger,
  replaceDecimal,
  insertWord,
];

function flipBit(bytes: Buffer, { below }: Chance): Buffer {
  if (bytes.length === 0) return bytes;
  const at = below(bytes.length);
  bytes[at] = (bytes[at] ?? 0) ^ (1 << below(8));
  return bytes;
}

function setByte(bytes: Buffer, { below }: Chance): Buffer {
  if (bytes.length > 0) bytes[below(bytes.length)] = below(256);
  return bytes;
}

function cut(bytes: Buffer, { below }: Chance): Buffer {
  const at = below(bytes.length + 1);
  return replaced(bytes, at, at + 1 + below(PIECE_BYTES_MAX), Buffer.alloc(0));
}

function cutEnd(bytes: Buffer, { below }: Chance): Buffer {
  return bytes.subarray(0, below(bytes.length + 1));
}

function repeat(bytes: Buffer, { below }: Chance): Buffer {
  const piece = pieceOf(bytes, below);
  const at = below(bytes.length + 1);
  return replaced(bytes, at, at, Buffer.concat(Array.from({ length: 1 + below(REPEATS_MAX) }, () => piece)));
}

function splice(bytes: Buffer, { below, other }: Chance): Buffer {
  const at = below(bytes.length + 1);
  return replaced(bytes, at, at + below(PIECE_BYTES_MAX), pieceOf(other, below));
}

function crossOver(bytes: Buffer, { below, other }: Chance): Buffer {
  return Buffer.concat([bytes.subarray(0, below(bytes.length + 1)), other.subarray(below(other.length + 1))]);
}

function insertBytes(bytes: Buffer, { below }: Chance): Buffer {
  const at = below(bytes.length + 1);
  return replaced(bytes, at, at, Buffer.from(Array.from({ length: 1 + below(8) }, () => below(256))));
}

function overwriteInteger(bytes: Buffer, { below }: Chance): Buffer {
  const at = below(bytes.length + 1);
  const integer = encodedInteger(below);
  return replaced(bytes, at, at + integer.length, integer);
}

function insertInteger(bytes: Buffer, { below }: Chance): Buffer {
  const at = below(bytes.length + 1);
  return replaced(bytes, at, at, encodedInteger(below));
}

/** Finds the next decimal number in the input at or after a position. */
function replaceDecimal(bytes: Buffer, { below }: Chance): Buffer {
  let from = below(bytes.length + 1);
  while (from < bytes.length && !isDigit(bytes[from])) from += 1;
  let to = from;
  while (isDigit(bytes[to])) to += 1;
  return replaced(bytes, from, to, Buffer.from(one(below, DECIMALS)));
}

function insertWord(bytes: Buffer, { below, words }: Chance): Buffer {
  if (words.length === 0) return bytes;
  const at = below(bytes.length + 1);
  return replaced(bytes, at, at, Buffer.from(one(below, words)));
}

/** Encodes a number in one of the forms this program uses: varint, fixed width in both byte orders, floating point. */
function encodedInteger(below: RandomBelow): Buffer {
  const value = one(below, INTEGERS);
  const bytes = Buffer.alloc(8);
  switch (below(5)) {
    case 0:
      return varint(value);
    case 1:
      bytes.writeDoubleLE(below(4) === 0 ? -value : value);
      return bytes;
    case 2:
      bytes.writeBigUInt64BE(BigInt(value));
      return bytes.subarray(8 - 2 ** below(4));
    case 3:
      bytes.writeBigUInt64LE(BigInt(value));
      return bytes.subarray(0, 2 ** below(4));
    default:
      return Buffer.of(value & 0xff);
  }
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 0x80);
  return Buffer.from([...bytes, rest]);
}

function pieceOf(bytes: Uint8Array, below: RandomBelow): Uint8Array {
  const from = below(bytes.length + 1);
  return bytes.subarray(from, from + 1 + below(PIECE_BYTES_MAX));
}

function replaced(bytes: Buffer, from: number, to: number, piece: Uint8Array): Buffer {
  return Buffer.concat([bytes.subarray(0, from), piece, bytes.subarray(to)]);
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= 0x30 && byte <= 0x39;
}

function one<T>(below: RandomBelow, from: readonly T[]): T {
  return from[below(from.length)]!;
}
