/**
 * Values from outside with fields of their own, read one by one: what is wrong is named by its path. Knows the form of
 * values, nothing of what they mean.
 */
import { isBoundedInteger } from './bounded.ts';

/** `field` is the path of a value that is not as it must be. */
export class InvalidFieldError extends Error {
  override readonly name = 'InvalidFieldError';
  readonly code = 'INVALID_FIELD';
  readonly field: string;
  /** What it must be, or why it is refused; follows the field in a sentence. */
  readonly bound: string;

  constructor(field: string, bound: string) {
    super(`${field} ${bound}`);
    this.field = field;
    this.bound = bound;
  }
}

/**
 * With no keys but these: a misspelt one must not silently mean the default.
 *
 * @param pathOf what to call a key that is not known
 * @throws InvalidFieldError
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

/** @throws InvalidFieldError */
export function integerAt(value: unknown, path: string, min: number, max: number): number {
  if (!isBoundedInteger(value, min, max)) {
    throw new InvalidFieldError(path, `must be an integer from ${min} to ${max}`);
  }
  return value;
}
