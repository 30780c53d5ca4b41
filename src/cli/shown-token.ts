/**
 * The token that commands send to nodes: from the environment or from a file. It is not an option itself, because every
 * process of a machine can read the arguments of others.
 */
import { readFile } from 'node:fs/promises';
import { ConfigError } from '../config/config.ts';
import { partsOfToken } from '../api/token.ts';

/** The environment variable with the token. */
export const TOKEN_VARIABLE = 'QUORATE_TOKEN';

let tokenOfFile: string | undefined;

/** Uses the token in the file `path` instead of the one in the environment. @throws ConfigError if the file has none */
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

/** The header with the token; empty without a token. @throws ConfigError if the token is malformed */
export function authorization(): { readonly authorization?: string } {
  const text = process.env[TOKEN_VARIABLE]?.trim() ?? '';
  const token = tokenOfFile ?? (text === '' ? undefined : checked(text, TOKEN_VARIABLE));
  return token === undefined ? {} : { authorization: `Bearer ${token}` };
}

/** The message does not repeat the text, because it may be another secret. */
function checked(text: string, where: string): string {
  if (partsOfToken(text) === undefined)
    throw new ConfigError(where, 'must hold a token as it was printed: qt_, an id, _ and a secret');
  return text;
}
