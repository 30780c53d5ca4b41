/**
 * Set up before every test file: bytes that are compared as a part of something are compared as bytes. `toEqual` would read
 * each of them as at an object, which takes a hundred times as long.
 */
import { expect } from 'vitest';

/** Undefined: for others to say. */
function areEqualBytes(a: unknown, b: unknown): boolean | undefined {
  if (!(a instanceof Uint8Array) || !(b instanceof Uint8Array) || a.constructor !== b.constructor)
    return undefined;
  return Buffer.compare(a, b) === 0;
}

expect.addEqualityTesters([areEqualBytes]);
