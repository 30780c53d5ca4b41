/**
 * The payloads of frames as MessagePack arrays, and the readers of their fields. Decoding trusts nothing: a wrong shape
 * is a FrameError. What the fields mean is said in the file of each kind of frame, and nowhere else.
 */
import { Packr } from 'msgpackr';
import type { HostPort } from '../api/node-address.ts';
import { FrameError } from './frame.ts';

/** No shared structures: every frame decodes on its own. Byte strings are copied out of the receive buffer. */
const packr = new Packr({ useRecords: false, copyBuffers: true, moreTypes: false });

export function pack(value: unknown): Buffer {
  return packr.pack(value);
}

export function unpack(bytes: Uint8Array): unknown {
  try {
    return packr.unpack(bytes);
  } catch (error) {
    throw new FrameError(`the payload is not MessagePack: ${String(error)}`);
  }
}

/** Reads an array from front to back, checking each value. */
export class Fields {
  readonly #values: readonly unknown[];
  #next = 0;

  constructor(value: unknown) {
    this.#values = array(value, 'message');
  }

  /** Nothing follows: whoever wrote this may know no more fields. */
  get isAtEnd(): boolean {
    return this.#next >= this.#values.length;
  }

  next(name: string): unknown {
    if (this.isAtEnd) throw new FrameError(`${name} is missing`);
    const value = this.#values[this.#next];
    this.#next += 1;
    return value;
  }

  integer(name: string): number {
    return integer(this.next(name), name);
  }

  /** Of a clock, with its fractions. */
  millis(name: string): number {
    const value = this.next(name);
    if (typeof value !== 'number' || !Number.isFinite(value)) throw new FrameError(`${name} is not a number`);
    return value;
  }

  integers(name: string): number[] {
    return array(this.next(name), name).map((value) => integer(value, name));
  }

  optionalIntegers(name: string): number[] | undefined {
    const value = this.next(name);
    return value === null || value === undefined
      ? undefined
      : array(value, name).map((each) => integer(each, name));
  }

  optionalInteger(name: string): number | undefined {
    const value = this.next(name);
    return value === null || value === undefined ? undefined : integer(value, name);
  }

  /** With its fractions and its sign; null where nothing is known. */
  optionalNumber(name: string): number | null {
    const value = this.next(name);
    if (value === null || value === undefined) return null;
    if (typeof value !== 'number' || !Number.isFinite(value)) throw new FrameError(`${name} is not a number`);
    return value;
  }

  boolean(name: string): boolean {
    const value = this.next(name);
    if (typeof value !== 'boolean') throw new FrameError(`${name} is not a boolean`);
    return value;
  }

  string(name: string): string {
    const value = this.next(name);
    if (typeof value !== 'string') throw new FrameError(`${name} is not a string`);
    return value;
  }

  optionalString(name: string): string | undefined {
    const value = this.next(name);
    if (value === null || value === undefined) return undefined;
    if (typeof value !== 'string') throw new FrameError(`${name} is not a string`);
    return value;
  }

  bytes(name: string): Uint8Array {
    const value = this.next(name);
    if (!(value instanceof Uint8Array)) throw new FrameError(`${name} is not a byte string`);
    return value;
  }

  oneOf<T extends string>(names: readonly T[], name: string): T {
    const value = names[this.integer(name)];
    if (value === undefined) throw new FrameError(`${name} is not one of ${names.join(', ')}`);
    return value;
  }
}

export function array(value: unknown, name: string): readonly unknown[] {
  if (!Array.isArray(value)) throw new FrameError(`${name} is not an array`);
  return value;
}

export function integer(value: unknown, name: string): number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0) {
    throw new FrameError(`${name} is not a whole number >= 0`);
  }
  return value;
}

/** A host and a port, each null where there is none. */
export function decodeAddress(fields: Fields, name: string): HostPort | undefined {
  const host = fields.optionalString(`${name} host`);
  const port = fields.optionalInteger(`${name} port`);
  if (host === undefined || port === undefined) return undefined;
  if (!/^[\w.:%-]{1,253}$/.test(host) || port < 1 || port > 65_535)
    throw new FrameError(`${name} is no address`);
  return { host, port };
}
