/**
 * Exchanges over kept connections of `node:http` and `node:https`: nothing to install, own authorities for TLS, and it tells whether
 * a request can have left, which built-in `fetch` does not. It repeats nothing.
 */
import { Agent, type ClientRequest, type IncomingMessage, request as httpRequest } from 'node:http';
import { Agent as TlsAgent, request as httpsRequest } from 'node:https';
import type { Socket } from 'node:net';
import type { Exchange, ExchangeResult, Transport } from './environment.ts';
import type { ClientTls } from './tls-options.ts';

/** The answer to the largest batch, each request under all limits that it may be under, has less. */
const ANSWER_BYTES_MAX = 16 * 1024 * 1024;
/** Of one node: one more than its batches at a time, for the report of leaders. */
const SPARE_SOCKETS = 1;

export interface HttpTransportInit {
  readonly token: string | undefined;
  readonly tls: ClientTls | undefined;
  readonly batchesPerNodeMax: number;
}

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
      // What TLS cannot be made with is thrown here.
      setImmediate(done, { kind: 'failed', isSent: false, error: error as Error });
      return;
    }
    this.#open.add(request);
    request.on('close', () => this.#open.delete(request));
    follow(request, { isSecure, timeoutMillis }, done);
    request.end(body);
  }

  close(): void {
    // An agent makes a new connection for whoever waits for one that it breaks.
    for (const request of this.#open) request.destroy(new Error('the client was closed'));
    this.#plain.destroy();
    this.#secure.destroy();
  }
}

/** Tells once what became of a request. */
function follow(
  request: ClientRequest,
  { isSecure, timeoutMillis }: { readonly isSecure: boolean; readonly timeoutMillis: number },
  done: (result: ExchangeResult) => void,
): void {
  let isSent = false;
  let isTold = false;
  const tell = (result: ExchangeResult): void => {
    if (isTold) return;
    isTold = true;
    clearTimeout(timer);
    done(result);
  };
  const fail = (error: Error): void => tell({ kind: 'failed', isSent, error });
  const timer = setTimeout(() => {
    const error = new Error(`no answer within ${Math.ceil(timeoutMillis)} ms`);
    fail(error);
    request.destroy(error);
  }, timeoutMillis);
  request.on('socket', (socket: Socket) => {
    // `reusedSocket` is false of a connection that is handed on from one request to the next that waits for it.
    if (socket.connecting) socket.once(isSecure ? 'secureConnect' : 'connect', () => (isSent = true));
    else isSent = true;
  });
  request.on('error', fail);
  request.on('response', (response) => {
    isSent = true;
    readAll(response, {
      fail,
      read: (body) => tell({ kind: 'response', status: response.statusCode ?? 0, body }),
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
      response.destroy(new Error(`an answer of more than ${ANSWER_BYTES_MAX} bytes`));
    else chunks.push(chunk);
  });
  response.on('error', fail);
  response.on('end', () => read(Buffer.concat(chunks).toString('utf8')));
  response.on('close', () => fail(new Error('the connection broke in the middle of an answer')));
}
