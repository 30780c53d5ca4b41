/** Parsers for command-line options. */
import { InvalidArgumentError } from 'commander';

export function integerOption(text: string): number {
  const value = Number(text);
  if (text.trim() === '' || !Number.isSafeInteger(value) || value < 0) {
    throw new InvalidArgumentError('expected a whole number >= 0');
  }
  return value;
}
