/**
 * The handshakes of a TLS server that are not done yet: anybody can begin one, so they are bounded in number and in time. With
 * one too many the oldest goes: a flood of idle connections can delay an honest client, which is done in milliseconds, and
 * never keep it out. It reads nothing, and knows nothing of what is said afterwards.
 */
import type { Socket } from 'node:net';
import type { Server, TLSSocket } from 'node:tls';

export interface HandshakeLimits {
  /** At a time. */
  readonly openMax: number;
  readonly millisMax: number;
}

export const HANDSHAKE_LIMITS: HandshakeLimits = { openMax: 128, millisMax: 5_000 };

export interface HandshakesInit {
  readonly limits?: HandshakeLimits;
  /** Told why one came to nothing. May be told as often as strangers like. */
  readonly failed: (reason: string, remoteAddress: string | undefined) => void;
}

export class Handshakes {
  readonly #init: HandshakesInit;
  readonly #limits: HandshakeLimits;
  /** By the address of the other end, which both sockets of a connection tell; the oldest first. */
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

  get count(): number {
    return this.#open.size;
  }

  /** Breaks all of them. */
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
      this.#break(oldest, `more than ${openMax} at a time: the oldest goes`);
    const timer = setTimeout(() => this.#break(end, `not done within ${millisMax} ms`), millisMax);
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

  /** False: it was over before. */
  #end(end: string): boolean {
    clearTimeout(this.#open.get(end)?.timer);
    return this.#open.delete(end);
  }
}

function endOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}

/** In few words, and with nothing that the other side chose. Of a certificate that is not trusted Node tells only the code. */
function reasonOf(
  error: Error & { readonly code?: string; readonly reason?: string },
  socket: TLSSocket,
): string {
  // A string, whatever its type says.
  const distrust: unknown = socket.authorizationError;
  if (typeof distrust === 'string') return `its certificate is refused: ${distrust}`;
  return error.reason ?? error.code ?? error.message;
}
