/**
 * The token that commands show to the nodes they ask: from the environment or from a file. It is no option itself, as every
 * process of a machine can read the arguments of the others.
 */
import { readFile } from 'node:fs/promises';
import { ConfigError } from '../config/config.ts';
import { partsOfToken } from '../api/token.ts';

export const TOKEN_VARIABLE = 'QUORATE_TOKEN';

let tokenOfFile: string | undefined;

/** Takes the token of `path` instead of the one in the environment. @throws ConfigError if there is none in it */
export async function showTokenOf(path: string): Promise<void> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    const why = error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
    throw new ConfigError('--token-file', `cannot be read: ${why} at ${path}`);
  }
  tokenOfFile = checked(text.trim(), `--token-file ${path}`);
}

/** The header that shows it; none where there is no token. @throws ConfigError if what there is has another form */
export function authorization(): { readonly authorization?: string } {
  const text = process.env[TOKEN_VARIABLE]?.trim() ?? '';
  const token = tokenOfFile ?? (text === '' ? undefined : checked(text, TOKEN_VARIABLE));
  return token === undefined ? {} : { authorization: `Bearer ${token}` };
}

/** It is not told what was there instead: it may be another secret. */
function checked(text: string, where: string): string {
  if (partsOfToken(text) === undefined)
    throw new ConfigError(where, 'must hold a token as it was printed: qt_, an id, _ and a secret');
  return text;
}
