/** What is fuzzed: a parser with what it takes, what it may answer, and what must hold of what it reads. No random numbers here. */
import { isDeepStrictEqual } from 'node:util';
import type fc from 'fast-check';

/** `read`, perhaps with what was read; or `refused: ` and the parser's own words. */
export type Outcome = `read${string}` | `refused: ${string}`;

/** Looks at what the parser made of an input, and may take what it wants for that. @throws whatever is a finding */
export type Judge = () => Outcome;

export interface Target {
  /** In small letters, with dashes. */
  readonly name: string;
  /** The parser, as a table of results names it. */
  readonly parser: string;
  /** Inputs that are read, made of a structure. */
  readonly sound: fc.Arbitrary<Uint8Array>;
  /** Inputs with damage to their structure instead of their bytes, for parsers of trees. They may be read or refused. */
  readonly near?: fc.Arbitrary<Uint8Array>;
  /** Words of the format, which are put in anywhere. */
  readonly words?: readonly string[];
  /** The longest input. */
  readonly bytesMax: number;
  /** What an input may allocate for each of its bytes, all that `run` does counted, but not what its judge does. */
  readonly bytesPerByteMax: number;
  /**
   * Parses the input, and looks at what was read.
   *
   * @throws whatever is a finding: an error that is not the parser's own, or a `BrokenPromise`
   */
  readonly run: (input: Buffer) => Outcome | Judge | Promise<Outcome>;
}

/** Something was read that should not have been, or not so. */
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
  // -0 is 0 for everybody but JavaScript.
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

/** Whichever class of errors a parser has. */
// oxlint-disable-next-line typescript/no-explicit-any -- a class is asked for nothing but its instances
type ErrorClass = abstract new (...args: any[]) => Error;

/** What reading gives; or its refusal, if that is of the parser's own `errors`. @throws any other error */
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
