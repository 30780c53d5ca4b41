/**
 * The connection that this node dials to one peer and sends on. It tries the peer's addresses in turn, says hello,
 * and counts as connected once it is welcomed. When there is nothing to send it sends keep-alives. Addresses may be
 * outdated; the hello names the node that is looked for, so any other node refuses.
 */
import { connect, type Socket } from 'node:net';
import type { Logger } from 'pino';
import type { NodeId } from '../../raft/types.ts';
import { addressText } from '../api/node-address.ts';
import { agreedVersion, noCommonVersionText } from '../api/versions.ts';
import type { PeerTls } from '../tls/node-tls.ts';
import { connectToPeer, isDistrust } from '../tls/peer-connections.ts';
import {
  encodeFrame,
  type Frame,
  FrameDecoder,
  FrameError,
  type FrameType,
  HANDSHAKE_VERSION,
  type PeerFrameType,
} from '../wire/frame.ts';
import {
  decodeRefusal,
  decodeWelcome,
  encodeHello,
  HELLO_BYTES_MAX,
  type Hello,
  type Refusal,
  type Welcome,
} from '../wire/hello.ts';

/** A host name or address, and a port. */
export interface PeerAddress {
  readonly host: string;
  readonly port: number;
}

/** What `Dialer` needs. */
export interface DialerInit {
  readonly peer: NodeId;
  readonly tag: Uint8Array;
  /** Absent: without TLS, anybody could answer. */
  readonly tls?: PeerTls;
  readonly logger: Logger;
  /** In [0, 1); spreads reconnects over time. */
  readonly random: () => number;
  /** Runs `flush` at the end of this event loop turn, so that all frames of a turn are one write. */
  readonly atTurnEnd: (flush: () => void) => void;
  readonly hello: () => Hello;
  readonly onConnected: () => void;
  readonly onDisconnected: () => void;
  readonly onRefused: (refusal: Refusal) => void;
  /** Whether to dial again after a connection failed or broke. */
  readonly mayRetry: () => boolean;
}

/**
 * Bytes that may be queued for one slow peer. Beyond that, frames are dropped; Raft and the deadlines handle that.
 */
const SEND_BUFFER_BYTES_MAX = 64 << 20;
const RECONNECT_MILLIS_MIN = 50;
const RECONNECT_MILLIS_MAX = 1_000;
/** Wait after a refusal at every address: it will most likely happen again until an operator acts. */
const REFUSED_MILLIS = 5_000;
/** From dialling to the welcome. */
const CONNECT_MILLIS_MAX = 2_000;
/** A connection that held this long was a success; the next wait starts from the minimum. */
const STABLE_MILLIS_MIN = 1_000;
/** Interval of keep-alives, unless something else was sent. */
export const KEEP_ALIVE_MILLIS = 1_000;
const NOTHING = new Uint8Array(0);

/** The connection to one peer. */
export class Dialer {
  readonly #init: DialerInit;
  /** Addresses from the list of nodes. */
  #listed: readonly PeerAddress[];
  /** The address from the peer's own hello. */
  #said: PeerAddress | undefined;
  /** Counts attempts; the address is this modulo their number. */
  #turn = 0;
  #socket: Socket | undefined;
  #isConnected = false;
  /** The peer's welcome; undefined while not connected. */
  #reached: Welcome | undefined;
  /** Protocol version of the frames that are sent. */
  #version = HANDSHAKE_VERSION;
  #connectedAtMillis = 0;
  #keepAlive: NodeJS.Timeout | undefined;
  /** Since the last keep-alive check. */
  #hasSent = false;
  #failures = 0;
  /** Attempts in a row that ended with a refusal. */
  #refusals = 0;
  #isRefused = false;
  /** Address and kind of what was logged since the last connection; bounded by their number. */
  readonly #logged = new Set<string>();
  /** Host names that did not resolve at the last attempt. */
  readonly #unresolved = new Set<string>();
  #retry: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(init: DialerInit, listed: readonly PeerAddress[], said?: PeerAddress) {
    this.#init = init;
    this.#listed = listed;
    this.#said = said;
  }

  get isConnected(): boolean {
    return this.#isConnected;
  }

  /** The peer's welcome; undefined while not connected. */
  get reached(): Welcome | undefined {
    return this.#reached;
  }

  /** All known addresses, each once. A peer without any is not dialled. */
  get #addresses(): PeerAddress[] {
    const all = [...this.#listed, ...(this.#said === undefined ? [] : [this.#said])];
    return all.filter((one, i) => all.findIndex((other) => isSame(one, other)) === i);
  }

  /** Sets the addresses from the list of nodes. An open connection is left alone. */
  list(listed: readonly PeerAddress[]): void {
    this.#learn(() => (this.#listed = listed));
  }

  /** The peer is alive, as it said hello, perhaps with its address. */
  heardFrom(said: PeerAddress | undefined): void {
    this.#learn(() => (this.#said = said ?? this.#said));
    // Try again at once.
    if (this.#retry === undefined) return;
    clearTimeout(this.#retry);
    this.dial();
  }

  #learn(change: () => void): void {
    const before = this.#addresses;
    const current = before[this.#turn % Math.max(1, before.length)];
    change();
    const after = this.#addresses;
    const fresh = after.findIndex((address) => !before.some((known) => isSame(known, address)));
    const same = after.findIndex((address) => current !== undefined && isSame(current, address));
    this.#turn = Math.max(0, fresh !== -1 && !this.#isConnected ? fresh : same);
  }

  /** Sends one frame. False: it was dropped, because the peer is not connected or too slow. */
  send(type: PeerFrameType, payload: Uint8Array): boolean {
    const socket = this.#socket;
    if (socket === undefined || !this.#isConnected) return false;
    if (socket.writableLength > SEND_BUFFER_BYTES_MAX) return false;
    this.#write(socket, type, payload);
    return true;
  }

  #write(socket: Socket, type: FrameType, payload: Uint8Array): void {
    if (socket.writableCorked === 0) {
      socket.cork();
      this.#init.atTurnEnd(() => socket.uncork());
    }
    socket.write(encodeFrame(type, payload, this.#init.tag, this.#version));
    this.#hasSent = true;
  }

  /** Sends a keep-alive, unless something was sent or is still queued. */
  #sayAlive(socket: Socket): void {
    if (!this.#hasSent && socket.writableLength === 0) this.#write(socket, 'alive', NOTHING);
    this.#hasSent = false;
  }

  /** Breaks the connection; it is dialled again. */
  break(): void {
    this.#socket?.destroy();
  }

  /** Ends the connection for good. */
  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#retry);
    // Flush what was written in this turn: it may be the last answers of a node that stops.
    this.#socket?.uncork();
    this.#socket?.destroy();
  }

  /** Dials the next address. */
  dial(): void {
    this.#retry = undefined;
    this.#isRefused = false;
    const addresses = this.#addresses;
    const address = addresses[this.#turn % Math.max(1, addresses.length)];
    if (this.#isClosed || address === undefined) return;
    const { peer, tag, hello, tls } = this.#init;
    const socket =
      tls === undefined
        ? connect({ ...address, noDelay: true, keepAlive: true })
        : connectToPeer(tls, address, peer);
    this.#socket = socket;
    this.#version = HANDSHAKE_VERSION;
    const timer = setTimeout(() => socket.destroy(), CONNECT_MILLIS_MAX);
    const decoder = new FrameDecoder(tag, HELLO_BYTES_MAX);
    const isOpen = tls === undefined ? 'connect' : 'secureConnect';
    let isProven = false;
    socket.once(isOpen, () => {
      isProven = tls !== undefined;
      this.#write(socket, 'hello', encodeHello(hello()));
    });
    socket.on('data', (bytes: Buffer) => {
      try {
        if (socket.destroyed) return;
        decoder.push(bytes, (frame) => {
          if (socket.destroyed) return;
          clearTimeout(timer);
          this.#answered(socket, frame, address);
        });
      } catch (error) {
        if (!(error instanceof FrameError)) throw error;
        this.#logOnce(address, 'frame', `the process at this address is not node ${peer}: ${error.message}`);
        socket.destroy();
      }
    });
    // Only emitted for host names.
    socket.on('lookup', (error) => this.#lookedUp(error, address));
    socket.on('error', (error) => this.#failed(error, address));
    socket.once('close', () => {
      clearTimeout(timer);
      // A peer that does not trust our certificate closes the connection after the handshake, without a frame.
      if (isProven && !this.#isConnected && !this.#isRefused && !this.#isClosed)
        this.#logDistrust(address, 'it closed the connection after it saw our certificate');
      this.#closed();
    });
  }

  /**
   * Handles the peer's frames: first a welcome or a refusal; a refusal may also come later, when the peer learns
   * something.
   */
  #answered(socket: Socket, frame: Frame, address: PeerAddress): void {
    const { peer, logger } = this.#init;
    if (frame.type === 'welcome' && !this.#isConnected) {
      const reached = decodeWelcome(frame.payload);
      const { node, speaks, targetIncarnation } = this.#init.hello();
      // The recorded database of the peer may have become known only after our hello.
      if ((targetIncarnation ?? reached.incarnation) !== reached.incarnation)
        throw new FrameError('it has another database than the one recorded');
      const version = agreedVersion(speaks, reached.speaks);
      if (version === undefined) {
        const text = noCommonVersionText({ node: peer, speaks: reached.speaks }, { node, speaks });
        this.#unwanted(socket, address, { code: 'otherVersion', text });
        return;
      }
      this.#reached = reached;
      this.#version = version;
      this.#isConnected = true;
      this.#connectedAtMillis = performance.now();
      this.#keepAlive = setInterval(() => this.#sayAlive(socket), KEEP_ALIVE_MILLIS);
      this.#refusals = 0;
      this.#logged.clear();
      logger.info({ peer, address, version }, 'connected to peer');
      this.#init.onConnected();
    } else if (frame.type === 'refused') {
      const refusal = decodeRefusal(frame.payload);
      this.#unwanted(socket, address, refusal);
      this.#init.onRefused(refusal);
    } else {
      throw new FrameError(`expected a welcome, got ${frame.type}`);
    }
  }

  /** One side has refused the other: closes the connection and tries again later. */
  #unwanted(socket: Socket, address: PeerAddress, { code, text }: Refusal): void {
    this.#refusals += 1;
    this.#isRefused = true;
    this.#logOnce(address, code, text);
    socket.destroy();
  }

  #logOnce(address: PeerAddress, kind: string, text: string): void {
    const key = `${addressText(address)} ${kind}`;
    if (this.#logged.has(key)) return;
    this.#logged.add(key);
    const { logger, peer } = this.#init;
    // The removal of a node, here or there, was intended by somebody.
    const isExpected = kind === 'removed' || kind === 'wrongTarget';
    logger[isExpected ? 'warn' : 'error']({ peer, address, refused: kind }, text);
  }

  /** Logs when a name stops resolving and when it resolves again, not every attempt in between. */
  #lookedUp(error: NodeJS.ErrnoException | null, address: PeerAddress): void {
    const { peer, logger } = this.#init;
    const { host } = address;
    if (error === null) {
      if (this.#unresolved.delete(host)) logger.info({ peer, address }, `the name ${host} resolves again`);
    } else if (!this.#unresolved.has(host)) {
      this.#unresolved.add(host);
      logger.warn(
        { peer, address, code: error.code },
        `the name ${host} of node ${peer} does not resolve: check DNS, or correct the host; it is looked up for each attempt`,
      );
    }
  }

  /** An absent peer is normal and logged for debugging only. A failure of trust is logged as an error. */
  #failed(error: Error & { readonly code?: string }, address: PeerAddress): void {
    const { peer, logger, tls } = this.#init;
    logger.debug({ peer, err: error }, 'connection to peer failed');
    if (tls !== undefined && isDistrust(error)) this.#logDistrust(address, error.message);
  }

  #logDistrust(address: PeerAddress, why: string): void {
    this.#logOnce(
      address,
      'certificate',
      `no trust between this node and the process at this address: ${why}`,
    );
  }

  #closed(): void {
    const wasConnected = this.#isConnected;
    this.#isConnected = false;
    clearInterval(this.#keepAlive);
    this.#reached = undefined;
    this.#socket = undefined;
    if (wasConnected && performance.now() - this.#connectedAtMillis >= STABLE_MILLIS_MIN) this.#failures = 0;
    if (!this.#isRefused) this.#refusals = 0;
    // An address that worked is tried again first.
    if (!wasConnected) this.#turn += 1;
    if (wasConnected) this.#init.onDisconnected();
    if (this.#isClosed || !this.#init.mayRetry()) return;
    this.#retry = setTimeout(() => this.dial(), this.#reconnectMillis());
    this.#failures += 1;
  }

  /** Doubles up to a second, with jitter, so that a returning node is not flooded. */
  #reconnectMillis(): number {
    const rounds = this.#failures / Math.max(1, this.#addresses.length);
    const usual = Math.min(RECONNECT_MILLIS_MAX, RECONNECT_MILLIS_MIN * 2 ** Math.min(rounds, 10));
    const base = this.#refusals >= this.#addresses.length ? REFUSED_MILLIS : usual;
    return base * (0.5 + this.#init.random() / 2);
  }
}

function isSame(a: PeerAddress, b: PeerAddress): boolean {
  return a.host === b.host && a.port === b.port;
}
