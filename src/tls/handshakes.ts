/**
 * Bounds the unfinished handshakes of a TLS server, in number and in time, because anybody can start one. If there
 * are too many, the oldest is broken. An honest client finishes in milliseconds, so a flood of idle connections can
 * delay it but never keep it out. It does not read any data.
 */
import type { Socket } from 'node:net';
import type { Server, TLSSocket, TlsOptions } from 'node:tls';
import type { Logger } from 'pino';
import type { LiveCredentials } from './live-credentials.ts';

/** The bounds. */
export interface HandshakeLimits {
  /** The most unfinished handshakes at a time. */
  readonly openMax: number;
  readonly millisMax: number;
}

/** The defaults. */
export const HANDSHAKE_LIMITS: HandshakeLimits = { openMax: 128, millisMax: 5_000 };

/** What it is built from. */
export interface HandshakesInit {
  readonly limits?: HandshakeLimits;
  /** Called with the reason of each failed handshake. Strangers can cause any number of calls. */
  readonly failed: (reason: string, remoteAddress: string | undefined) => void;
}

/** The unfinished handshakes of a server. */
export class Handshakes {
  readonly #init: HandshakesInit;
  readonly #limits: HandshakeLimits;
  /** By remote address and port, which are the same for the raw socket and the TLS socket. The oldest first. */
  readonly #open = new Map<string, { readonly raw: Socket; readonly timer: NodeJS.Timeout }>();

  constructor(server: Server, init: HandshakesInit) {
    this.#init = init;
    this.#limits = init.limits ?? HANDSHAKE_LIMITS;
    server.on('connection', (raw: Socket) => this.#begun(raw));
    server.on('secureConnection', (socket) => this.#end(endOf(socket)));
    server.on('tlsClientError', (error, socket: TLSSocket) => {
      socket.on('error', () => {});
      if (this.#end(endOf(socket))) this.#init.failed(reasonOf(error, socket), socket.remoteAddress);
      socket.destroy();
    });
  }

  /** The number of unfinished handshakes. */
  get count(): number {
    return this.#open.size;
  }

  /** Breaks all unfinished handshakes. */
  close(): void {
    for (const [end, { raw }] of this.#open) {
      this.#end(end);
      raw.destroy();
    }
  }

  #begun(raw: Socket): void {
    const end = endOf(raw);
    const { openMax, millisMax } = this.#limits;
    const [oldest] = this.#open.keys();
    if (oldest !== undefined && this.#open.size >= openMax)
      this.#break(oldest, `more than ${openMax} at a time: the oldest is broken`);
    const timer = setTimeout(() => this.#break(end, `not finished within ${millisMax} ms`), millisMax);
    this.#open.set(end, { raw, timer });
    raw.once('close', () => {
      if (this.#open.get(end)?.raw === raw) this.#end(end);
    });
  }

  #break(end: string, reason: string): void {
    const raw = this.#open.get(end)?.raw;
    this.#end(end);
    if (raw === undefined) return;
    this.#init.failed(reason, raw.remoteAddress);
    raw.destroy();
  }

  /** Returns false if it was over already. */
  #end(end: string): boolean {
    clearTimeout(this.#open.get(end)?.timer);
    return this.#open.delete(end);
  }
}

function endOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}

/**
 * A short reason that contains nothing the other side chose. For an untrusted certificate, Node only gives a code.
 */
function reasonOf(
  error: Error & { readonly code?: string; readonly reason?: string },
  socket: TLSSocket,
): string {
  // At runtime this is a string, although its type says otherwise.
  const distrust: unknown = socket.authorizationError;
  if (typeof distrust === 'string') return `its certificate is refused: ${distrust}`;
  return error.reason ?? error.code ?? error.message;
}

/** The bounds of an API listener: higher than for peers, because many clients may reconnect at once. */
const API_LISTENER_LIMITS: HandshakeLimits = { openMax: 1_024, millisMax: 10_000 };

/** The TLS options to create the server of an API listener with. Clients need no certificate. */
export function listenerOptions({ current: { cert, key } }: LiveCredentials): TlsOptions {
  return { cert, key, minVersion: 'TLSv1.2' };
}

/** Makes the server of an API listener follow changes of the certificate, and bounds its handshakes. */
export function guardListener(server: Server, tls: LiveCredentials, logger: Logger): Handshakes {
  tls.onReplaced(() => server.setSecureContext(listenerOptions(tls)));
  return new Handshakes(server, {
    limits: API_LISTENER_LIMITS,
    failed: (reason, remoteAddress) =>
      logger.debug({ reason, remoteAddress }, 'a handshake of a client failed'),
  });
}
