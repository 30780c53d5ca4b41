/** Reads objects from outside field by field. An error names the path of the field that is wrong. */
import { isBoundedInteger } from './bounded.ts';

/** A value from outside is wrong. `field` is its path, such as `add.http.port`. */
export class InvalidFieldError extends Error {
  override readonly name = 'InvalidFieldError';
  readonly code = 'INVALID_FIELD';
  readonly field: string;
  /** What the field must be, or why it is refused. The message is the field followed by this text. */
  readonly bound: string;

  constructor(field: string, bound: string) {
    super(`${field} ${bound}`);
    this.field = field;
    this.bound = bound;
  }
}

/**
 * The value as an object that has no other keys than `keys`. An unknown key is an error, because a misspelt key would
 * otherwise silently mean the default.
 *
 * @param path the path of the object, for error messages
 * @param pathOf gives the path of an unknown key
 * @throws InvalidFieldError if the value is no object or has an unknown key
 */
export function objectAt(
  value: unknown,
  path: string,
  keys: readonly string[],
  pathOf = (key: string): string => `${path}.${key}`,
): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new InvalidFieldError(path, 'must be an object');
  }
  const unknown = Object.keys(value).find((key) => !keys.includes(key));
  if (unknown !== undefined) {
    throw new InvalidFieldError(pathOf(unknown), `is not known; known here are ${keys.join(', ')}`);
  }
  return value as Record<string, unknown>;
}

/** The value as an integer from `min` to `max`, both included. @throws InvalidFieldError */
export function integerAt(value: unknown, path: string, min: number, max: number): number {
  if (!isBoundedInteger(value, min, max)) {
    throw new InvalidFieldError(path, `must be an integer from ${min} to ${max}`);
  }
  return value;
}
