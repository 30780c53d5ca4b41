/**
 * Sends requests to nodes over kept connections of `node:http` and `node:https`. Built-in `fetch` would not do: it
 * cannot use other certificate authorities, and does not say whether a failed request was sent. This transport does not
 * retry.
 */
import { Agent, type ClientRequest, type IncomingMessage, request as httpRequest } from 'node:http';
import { Agent as TlsAgent, request as httpsRequest } from 'node:https';
import type { Socket } from 'node:net';
import type { Exchange, ExchangeResult, Transport } from './environment.ts';
import type { ClientTls } from './tls-options.ts';

/** Longest answer to read, in bytes. The answer to the largest batch under the most limits is shorter. */
const ANSWER_BYTES_MAX = 16 * 1024 * 1024;
/** Connections to each node besides those for its batches: one to fetch the leaders. */
const SPARE_SOCKETS = 1;

/** The client options that the transport needs. */
export interface HttpTransportInit {
  readonly token: string | undefined;
  readonly tls: ClientTls | undefined;
  readonly batchesPerNodeMax: number;
}

/** The transport of real clients. */
export class HttpTransport implements Transport {
  readonly #plain: Agent;
  readonly #secure: TlsAgent;
  readonly #authorization: Readonly<Record<string, string>>;
  readonly #open = new Set<ClientRequest>();

  constructor({ token, tls, batchesPerNodeMax }: HttpTransportInit) {
    const pool = { keepAlive: true, maxSockets: batchesPerNodeMax + SPARE_SOCKETS };
    this.#plain = new Agent(pool);
    const { ca, ...rest } = tls ?? {};
    const authorities = ca === undefined ? {} : { ca: typeof ca === 'string' ? ca : [...ca] };
    this.#secure = new TlsAgent({ ...pool, ...rest, ...authorities });
    this.#authorization = token === undefined ? {} : { authorization: `Bearer ${token}` };
  }

  send(
    { origin, method, path, body, timeoutMillis }: Exchange,
    done: (result: ExchangeResult) => void,
  ): void {
    const isSecure = origin.startsWith('https:');
    const content =
      body === undefined
        ? {}
        : { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(body)) };
    const options = {
      method,
      agent: isSecure ? this.#secure : this.#plain,
      headers: { ...this.#authorization, ...content },
    };
    const url = new URL(path, origin);
    let request: ClientRequest;
    try {
      request = isSecure ? httpsRequest(url, options) : httpRequest(url, options);
    } catch (error) {
      // Invalid TLS options throw here.
      setImmediate(done, { kind: 'failed', isSent: false, error: error as Error });
      return;
    }
    this.#open.add(request);
    request.on('close', () => this.#open.delete(request));
    follow(request, { isSecure, timeoutMillis }, done);
    request.end(body);
  }

  close(): void {
    // Destroy the requests before the agents: an agent that loses a connection opens a new one for a waiting request.
    for (const request of this.#open) request.destroy(new Error('the client was closed'));
    this.#plain.destroy();
    this.#secure.destroy();
  }
}

/** Calls `done` once, with the result of a request. */
function follow(
  request: ClientRequest,
  { isSecure, timeoutMillis }: { readonly isSecure: boolean; readonly timeoutMillis: number },
  done: (result: ExchangeResult) => void,
): void {
  let isSent = false;
  let isReported = false;
  const report = (result: ExchangeResult): void => {
    if (isReported) return;
    isReported = true;
    clearTimeout(timer);
    done(result);
  };
  const fail = (error: Error): void => report({ kind: 'failed', isSent, error });
  const timer = setTimeout(() => {
    const error = new Error(`no answer within ${Math.ceil(timeoutMillis)} ms`);
    fail(error);
    request.destroy(error);
  }, timeoutMillis);
  request.on('socket', (socket: Socket) => {
    // `reusedSocket` cannot be used here: it is false when a waiting request takes over the connection of an earlier
    // one.
    if (socket.connecting) socket.once(isSecure ? 'secureConnect' : 'connect', () => (isSent = true));
    else isSent = true;
  });
  request.on('error', fail);
  request.on('response', (response) => {
    isSent = true;
    readAll(response, {
      fail,
      read: (body) => report({ kind: 'response', status: response.statusCode ?? 0, body }),
    });
  });
}

function readAll(
  response: IncomingMessage,
  { fail, read }: { readonly fail: (error: Error) => void; readonly read: (body: string) => void },
): void {
  const chunks: Buffer[] = [];
  let bytes = 0;
  response.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > ANSWER_BYTES_MAX)
      response.destroy(new Error(`the answer is longer than ${ANSWER_BYTES_MAX} bytes`));
    else chunks.push(chunk);
  });
  response.on('error', fail);
  response.on('end', () => read(Buffer.concat(chunks).toString('utf8')));
  response.on('close', () => fail(new Error('the connection broke in the middle of an answer')));
}
