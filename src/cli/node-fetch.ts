/**
 * The URLs of the HTTP listeners of nodes, the token that commands send to them, and `fetch` for them. Unlike the
 * built-in one it can trust the CA of a cluster. With TLS it follows no redirects.
 */
import { readFile } from 'node:fs/promises';
import { ConfigError, type ClusterConfig } from '../config/config.ts';
import { partsOfToken } from '../api/token.ts';
import { Agent, request } from 'node:https';
import { Readable } from 'node:stream';
import { connect } from 'node:tls';
import { addressText, type NodeAddress } from '../api/node-address.ts';

/** The request. */
export interface FetchInit {
  readonly signal: AbortSignal;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
}

/** The certificates to trust. */
export interface Trust {
  /** Certificate authorities in PEM, instead of those that Node trusts. */
  readonly ca: readonly string[];
  /** Accept a valid certificate with any host name. */
  readonly anyHost?: true;
}

const BODY_STATUS_NONE: readonly (number | undefined)[] = [204, 304];
/** One for the process, because a command talks to one cluster. */
let agent: Agent | undefined;

/** From now on this process trusts only these authorities. */
export function trustOnly({ ca, anyHost }: Trust): void {
  agent = new Agent({
    ca: [...ca],
    ...(anyHost === true && { checkServerIdentity: () => undefined }),
  });
}

/** Reads a file of certificate authorities. @throws ConfigError if it cannot be read, or has none */
export async function readAuthorities(path: string, setting: string): Promise<string> {
  const text = await readFile(path, 'latin1').catch((error: unknown) => {
    throw new ConfigError(
      setting,
      `${path} cannot be read: ${error instanceof Error ? error.message : 'unknown'}`,
    );
  });
  if (text.includes('-----BEGIN CERTIFICATE-----')) return text;
  throw new ConfigError(setting, `${path} holds no certificate in PEM`);
}

/**
 * Sends a request. Rejects if there is no answer or the certificate is not trusted. Reading the body fails if the
 * connection breaks.
 */
export async function nodeFetch(url: URL, init: FetchInit): Promise<Response> {
  if (url.protocol !== 'https:') return fetch(url, init);
  const { signal, method = 'GET', headers, body } = init;
  return new Promise((resolve, reject) => {
    const asked = request(
      url,
      { method, signal, headers, ...(agent !== undefined && { agent }) },
      (answer) => {
        const { statusCode: status } = answer;
        const isEmpty = BODY_STATUS_NONE.includes(status);
        if (isEmpty) answer.resume();
        // As a stream, because a backup can be larger than the memory.
        const stream = isEmpty ? null : (Readable.toWeb(answer) as ReadableStream<Uint8Array>);
        const headers = Object.entries(answer.headers).map(
          ([name, value]) => [name, String(value)] as [string, string],
        );
        resolve(new Response(stream, { ...(status !== undefined && { status }), headers }));
      },
    );
    asked.on('error', reject);
    asked.end(body);
  });
}

const HANDSHAKE_MILLIS_MAX = 2_000;

/** Returns true if the program at the address speaks TLS. Sends no request, and checks no certificate. */
export async function speaksTls({ hostname, port }: URL): Promise<boolean> {
  const host = hostname.replace(/^\[(.*)\]$/, '$1');
  return new Promise((resolve) => {
    const socket = connect({ host, port: Number(port || 443), rejectUnauthorized: false });
    const end = (speaks: boolean): void => {
      socket.destroy();
      resolve(speaks);
    };
    socket.setTimeout(HANDSHAKE_MILLIS_MAX, () => end(false));
    socket.once('secureConnect', () => end(true));
    socket.once('error', () => end(false));
    socket.once('close', () => end(false));
  });
}

/** Returns the URL at which a node answers HTTP, with or without TLS as set in cluster.json. */
export function listenerUrl({ http }: Pick<NodeAddress, 'http'>, tls: ClusterConfig['tls']): string {
  return `${tls?.listeners === undefined ? 'http' : 'https'}://${addressText(http)}`;
}

/** The environment variable with the token. The token is not an option, because every process can read those of others. */
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
