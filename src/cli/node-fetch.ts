/**
 * `fetch` for the listeners of nodes: the same, and with TLS by the CAs that this process was told to trust, which Node's own takes
 * from nobody. It follows no redirects there.
 */
import { readFile } from 'node:fs/promises';
import { Agent, request } from 'node:https';
import { Readable } from 'node:stream';
import { connect } from 'node:tls';
import { ConfigError } from '../config/config.ts';

export interface FetchInit {
  readonly signal: AbortSignal;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
}

export interface Trust {
  /** Instead of those that Node knows. PEM. */
  readonly ca: readonly string[];
  /** Any host: whoever has a certificate of these CAs is trusted wherever it answers. */
  readonly anyHost?: true;
}

const BODY_STATUS_NONE: readonly (number | undefined)[] = [204, 304];
/** Of this process: a command speaks with the nodes of one cluster. */
let agent: Agent | undefined;

export function trustOnly({ ca, anyHost }: Trust): void {
  agent = new Agent({
    ca: [...ca],
    ...(anyHost === true && { checkServerIdentity: () => undefined }),
  });
}

/** @throws ConfigError if it cannot be read */
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

/** Rejects if nobody answers, or who answers is not trusted; the body, if the connection breaks. */
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
        // As it comes: a backup is larger than what fits into memory.
        const stream = isEmpty ? null : (Readable.toWeb(answer) as ReadableStream<Uint8Array>);
        const told = Object.entries(answer.headers).map(
          ([name, value]) => [name, String(value)] as [string, string],
        );
        resolve(new Response(stream, { ...(status !== undefined && { status }), headers: told }));
      },
    );
    asked.on('error', reject);
    asked.end(body);
  });
}

const HANDSHAKE_MILLIS_MAX = 2_000;

/** Whether who listens there begins a TLS connection. It sends nothing, and trusts nobody. */
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
