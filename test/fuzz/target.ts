/**
 * The interface of a fuzz target: a parser with its inputs, its allowed errors, and checks of its results. No random
 * numbers here.
 */
import { isDeepStrictEqual } from 'node:util';
import type fc from 'fast-check';

/** `read`, perhaps with the result; or `refused: ` and the parser's message. */
export type Outcome = `read${string}` | `refused: ${string}`;

/** Checks the result of the parser, with any time and memory. @throws any error that is a finding */
export type Judge = () => Outcome;

export interface Target {
  /** Name in lower case, with dashes. */
  readonly name: string;
  /** Name of the parser in the table of results. */
  readonly parser: string;
  /** Makes valid inputs from a structure. */
  readonly sound: fc.Arbitrary<Uint8Array>;
  /**
   * Inputs with damage to their structure instead of their bytes, for parsers of trees. They may be read or refused.
   */
  readonly near?: fc.Arbitrary<Uint8Array>;
  /** Words of the format, inserted anywhere. */
  readonly words?: readonly string[];
  /** The longest input. */
  readonly bytesMax: number;
  /** Memory that `run` may allocate for each byte of input, without the checks of its result. */
  readonly bytesPerByteMax: number;
  /**
   * Parses the input and checks the result.
   *
   * @throws a finding: an error that is not the parser's own, or a `BrokenPromise`
   */
  readonly run: (input: Buffer) => Outcome | Judge | Promise<Outcome>;
}

/** The parser accepted a wrong input, or read it wrongly. */
export class BrokenPromise extends Error {
  readonly code = 'BROKEN_PROMISE';

  constructor(message: string) {
    super(message);
    this.name = 'BrokenPromise';
  }
}

/** @throws BrokenPromise */
export function promise(isKept: boolean, what: string): asserts isKept {
  if (!isKept) throw new BrokenPromise(what);
}

/** Byte strings are equal by their bytes, a field that is undefined is not there. @throws BrokenPromise */
export function promiseSame(found: unknown, expected: unknown, what: string): void {
  const same = isDeepStrictEqual(plain(found), plain(expected));
  if (!same) throw new BrokenPromise(`${what}: ${shown(found)} instead of ${shown(expected)}`);
}

function plain(value: unknown): unknown {
  // Treats -0 as 0: no encoding distinguishes them.
  if (value === 0) return 0;
  if (value instanceof Uint8Array) return Buffer.from(value).toString('latin1');
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== 'object' || value === null || value instanceof Map) return value;
  const fields = Object.entries(value).filter(([, part]) => part !== undefined);
  return Object.fromEntries(fields.map(([name, part]) => [name, plain(part)]));
}

const SHOWN_CHARACTERS = 300;

function shown(value: unknown): string {
  return (JSON.stringify(value) ?? String(value)).slice(0, SHOWN_CHARACTERS);
}

/** Any class of errors. */
// oxlint-disable-next-line typescript/no-explicit-any -- a class is asked for nothing but its instances
type ErrorClass = abstract new (...args: any[]) => Error;

/** Returns the result, or the refusal if its class is in `errors`. @throws any other error */
export function readOr<T>(
  errors: readonly ErrorClass[],
  read: () => T,
): { readonly value: T } | { readonly refused: Outcome } {
  try {
    return { value: read() };
  } catch (error) {
    const own = errors.find((each) => error instanceof each);
    if (own === undefined) throw error;
    return { refused: `refused: ${(error as Error).message}` };
  }
}
