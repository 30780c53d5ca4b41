/**
 * Encodes payloads as MessagePack arrays, and reads their fields with checks: a wrong type or range is a
 * FrameError. The file of each kind of frame says what its fields mean.
 */
import { Packr } from 'msgpackr';
import type { HostPort } from '../api/node-address.ts';
import { FrameError } from './frame.ts';

/**
 * No shared structures, so every frame can be decoded on its own. Byte strings are copied out of the receive
 * buffer.
 */
const packr = new Packr({ useRecords: false, copyBuffers: true, moreTypes: false });

/** Encodes a value as MessagePack. */
export function pack(value: unknown): Buffer {
  return packr.pack(value);
}

/** Decodes MessagePack. @throws FrameError if it is malformed */
export function unpack(bytes: Uint8Array): unknown {
  try {
    return packr.unpack(bytes);
  } catch (error) {
    throw new FrameError(`the payload is not MessagePack: ${String(error)}`);
  }
}

/** Reads an array from front to back and checks each value. All methods throw FrameError, naming the field. */
export class Fields {
  readonly #values: readonly unknown[];
  #next = 0;

  constructor(value: unknown) {
    this.#values = array(value, 'message');
  }

  /** No more fields; an older version may have written fewer. */
  get isAtEnd(): boolean {
    return this.#next >= this.#values.length;
  }

  /** The next value, unchecked. */
  next(name: string): unknown {
    if (this.isAtEnd) throw new FrameError(`${name} is missing`);
    const value = this.#values[this.#next];
    this.#next += 1;
    return value;
  }

  /** An integer >= 0. */
  integer(name: string): number {
    return integer(this.next(name), name);
  }

  /** A time in milliseconds, which may have a fraction. */
  millis(name: string): number {
    const value = this.next(name);
    if (typeof value !== 'number' || !Number.isFinite(value)) throw new FrameError(`${name} is not a number`);
    return value;
  }

  /** An array of integers >= 0. */
  integers(name: string): number[] {
    return array(this.next(name), name).map((value) => integer(value, name));
  }

  /** Like `integers`; undefined if absent. */
  optionalIntegers(name: string): number[] | undefined {
    const value = this.next(name);
    return value === null || value === undefined
      ? undefined
      : array(value, name).map((each) => integer(each, name));
  }

  /** Like `integer`; undefined if absent. */
  optionalInteger(name: string): number | undefined {
    const value = this.next(name);
    return value === null || value === undefined ? undefined : integer(value, name);
  }

  /** A number, perhaps negative or with a fraction; null if unknown. */
  optionalNumber(name: string): number | null {
    const value = this.next(name);
    if (value === null || value === undefined) return null;
    if (typeof value !== 'number' || !Number.isFinite(value)) throw new FrameError(`${name} is not a number`);
    return value;
  }

  /** A boolean. */
  boolean(name: string): boolean {
    const value = this.next(name);
    if (typeof value !== 'boolean') throw new FrameError(`${name} is not a boolean`);
    return value;
  }

  /** A string. */
  string(name: string): string {
    const value = this.next(name);
    if (typeof value !== 'string') throw new FrameError(`${name} is not a string`);
    return value;
  }

  /** Like `string`; undefined if absent. */
  optionalString(name: string): string | undefined {
    const value = this.next(name);
    if (value === null || value === undefined) return undefined;
    if (typeof value !== 'string') throw new FrameError(`${name} is not a string`);
    return value;
  }

  /** A byte string. */
  bytes(name: string): Uint8Array {
    const value = this.next(name);
    if (!(value instanceof Uint8Array)) throw new FrameError(`${name} is not a byte string`);
    return value;
  }

  /** One of these names, encoded as its index. */
  oneOf<T extends string>(names: readonly T[], name: string): T {
    const value = names[this.integer(name)];
    if (value === undefined) throw new FrameError(`${name} is not one of ${names.join(', ')}`);
    return value;
  }
}

/** The value as an array. @throws FrameError if it is none */
export function array(value: unknown, name: string): readonly unknown[] {
  if (!Array.isArray(value)) throw new FrameError(`${name} is not an array`);
  return value;
}

/** The value as an integer >= 0. @throws FrameError if it is none */
export function integer(value: unknown, name: string): number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0) {
    throw new FrameError(`${name} is not a whole number >= 0`);
  }
  return value;
}

/** Reads a host and a port; undefined if either is null. */
export function decodeAddress(fields: Fields, name: string): HostPort | undefined {
  const host = fields.optionalString(`${name} host`);
  const port = fields.optionalInteger(`${name} port`);
  if (host === undefined || port === undefined) return undefined;
  if (!/^[\w.:%-]{1,253}$/.test(host) || port < 1 || port > 65_535)
    throw new FrameError(`${name} is not an address`);
  return { host, port };
}
