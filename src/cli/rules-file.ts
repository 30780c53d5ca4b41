/** A file with a document of rules, or standard input: read no further than a document may be long, and told what is wrong in it. */
import { open } from 'node:fs/promises';
import { ConfigError } from '../config/config.ts';
import type { Mistake } from '../rules/mistakes.ts';
import type { RulesRead } from '../rules/read-rules.ts';
import { DOCUMENT_BYTES_MAX } from '../rules/rule-definition.ts';
import { number } from '../rules/words.ts';

export const STDIN = '-';

/** Every mistake and note with its place, a line each. */
export function printFindings(file: string, read: RulesRead, print: (line: string) => void): void {
  const where = ({ line, column }: Mistake): string => `${file}:${line}:${column}`;
  if (read.kind === 'mistakes') {
    for (const mistake of read.mistakes) print(`${where(mistake)}: ${mistake.message}`);
  }
  for (const note of read.notes) print(`${where(note)}: note: ${note.message}`);
  if (read.kind !== 'mistakes') return;
  const more = read.isComplete ? '' : '; there may be more, for reading ended there';
  print(`${file}: ${counted(read.mistakes.length, 'mistake')}${more}`);
}

export function counted(count: number, what: string): string {
  return `${number(count)} ${what}${count === 1 ? '' : 's'}`;
}

/**
 * No more of it than shows that it is too much.
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
