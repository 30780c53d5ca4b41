/**
 * Reads a document of rules from a file or from standard input, up to the longest length allowed, and prints its
 * mistakes.
 */
import { open } from 'node:fs/promises';
import { ConfigError } from '../config/config.ts';
import type { Mistake } from '../rules/mistakes.ts';
import type { RulesRead } from '../rules/read-rules.ts';
import { DOCUMENT_BYTES_MAX } from '../rules/rule-definition.ts';
import { number } from '../rules/words.ts';

/** The file name that means standard input. */
export const STDIN = '-';

/** Prints all mistakes and notes with their lines, one per line. */
export function printFindings(file: string, read: RulesRead, print: (line: string) => void): void {
  const where = ({ line, column }: Mistake): string => `${file}:${line}:${column}`;
  if (read.kind === 'mistakes') {
    for (const mistake of read.mistakes) print(`${where(mistake)}: ${mistake.message}`);
  }
  for (const note of read.notes) print(`${where(note)}: note: ${note.message}`);
  if (read.kind !== 'mistakes') return;
  const more = read.isComplete
    ? 'they may hide others, so check again when they are corrected'
    : 'there may be more, because reading stopped there';
  print(`${file}: ${counted(read.mistakes.length, 'mistake')}; ${more}`);
}

/** A number with its noun. @example counted(2, 'rule') // '2 rules' */
export function counted(count: number, what: string): string {
  return `${number(count)} ${what}${count === 1 ? '' : 's'}`;
}

/**
 * Reads a file, but no more than is needed to see that it is too long.
 *
 * @param file a path, or `STDIN`
 * @throws ConfigError if it cannot be read
 */
export async function bytesOf(file: string): Promise<Uint8Array> {
  try {
    if (file === STDIN) return await bounded(process.stdin);
    const handle = await open(file, 'r');
    return await bounded(handle.createReadStream());
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') throw new ConfigError(file, 'is not there; give a file, or - for standard input');
    if (code === 'EISDIR') throw new ConfigError(file, 'is a directory; give a file');
    if (code === 'EACCES') throw new ConfigError(file, 'may not be read by this user');
    throw error;
  }
}

async function bounded(stream: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of stream) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > DOCUMENT_BYTES_MAX) break;
  }
  return Buffer.concat(chunks);
}
