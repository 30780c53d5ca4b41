/**
 * The connection that this node dials to one peer, and sends on: tries the peer's addresses in turn, says hello, and
 * counts as connected once it is welcome. While there is nothing else to say it says that it lives. What is known of the peer's addresses may be old or wrong; the hello says who
 * is looked for, so whoever else answers refuses.
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

export interface PeerAddress {
  readonly host: string;
  readonly port: number;
}

export interface DialerInit {
  readonly peer: NodeId;
  readonly tag: Uint8Array;
  /** Absent: whoever answers may be anybody. */
  readonly tls?: PeerTls;
  readonly logger: Logger;
  /** In [0, 1); spreads reconnects. */
  readonly random: () => number;
  /** Runs `flush` at the end of this turn of the event loop: all frames of a turn are one write. */
  readonly atTurnEnd: (flush: () => void) => void;
  readonly hello: () => Hello;
  readonly onConnected: () => void;
  readonly onDisconnected: () => void;
  readonly onRefused: (refusal: Refusal) => void;
  /** Whether to go on after a connection failed or broke. */
  readonly mayRetry: () => boolean;
}

/** What may wait in memory for one slow peer. Past it, frames are dropped: Raft and the deadlines cope. */
const SEND_BUFFER_BYTES_MAX = 64 << 20;
const RECONNECT_MILLIS_MIN = 50;
const RECONNECT_MILLIS_MAX = 1_000;
/** Whoever was refused at every address will most likely be again: an operator has to do something first. */
const REFUSED_MILLIS = 5_000;
/** From dialling to the welcome. */
const CONNECT_MILLIS_MAX = 2_000;
/** A connection that held for so long was a success: the next reconnect starts from the shortest wait. */
const STABLE_MILLIS_MIN = 1_000;
/** A connection says so often that it lives, unless something else was sent since. */
export const KEEP_ALIVE_MILLIS = 1_000;
const NOTHING = new Uint8Array(0);

export class Dialer {
  readonly #init: DialerInit;
  /** Where others say that the peer is. */
  #listed: readonly PeerAddress[];
  /** Where it said itself that it is. */
  #said: PeerAddress | undefined;
  /** Which address is next, counted on and on. */
  #turn = 0;
  #socket: Socket | undefined;
  #isConnected = false;
  /** What was reached; `undefined` before. */
  #reached: Welcome | undefined;
  /** Of the frames that are sent. */
  #version = HANDSHAKE_VERSION;
  #connectedAtMillis = 0;
  #keepAlive: NodeJS.Timeout | undefined;
  /** Since it was last looked at. */
  #hasSent = false;
  #failures = 0;
  /** Attempts in a row that ended with a refusal. */
  #refusals = 0;
  #isRefused = false;
  /** What was logged since it was connected last, by address and kind: no more than there are of those. */
  readonly #told = new Set<string>();
  /** Names that did not resolve when they were looked up last. */
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

  get reached(): Welcome | undefined {
    return this.#reached;
  }

  /** Each once; never empty for long, for a peer without addresses is not dialled. */
  get #addresses(): PeerAddress[] {
    const all = [...this.#listed, ...(this.#said === undefined ? [] : [this.#said])];
    return all.filter((one, i) => all.findIndex((other) => isSame(one, other)) === i);
  }

  /** Others say that the peer is there. A connection that holds is left alone. */
  list(listed: readonly PeerAddress[]): void {
    this.#learn(() => (this.#listed = listed));
  }

  /** The peer lives, and says that it is there, if it can say so. */
  heardFrom(said: PeerAddress | undefined): void {
    this.#learn(() => (this.#said = said ?? this.#said));
    // It is worth a try at once.
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

  /** What was sent and is not taken yet says as much as a sign of life would. */
  #sayAlive(socket: Socket): void {
    if (!this.#hasSent && socket.writableLength === 0) this.#write(socket, 'alive', NOTHING);
    this.#hasSent = false;
  }

  /** Breaks the connection; it is dialled again. */
  break(): void {
    this.#socket?.destroy();
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#retry);
    // What was said in this turn is still said: it may be the last answers of a node that stops.
    this.#socket?.uncork();
    this.#socket?.destroy();
  }

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
        this.#tellOnce(address, 'frame', `what answers there is not node ${peer}: ${error.message}`);
        socket.destroy();
      }
    });
    // Told of each name that is looked up, and of no address.
    socket.on('lookup', (error) => this.#lookedUp(error, address));
    socket.on('error', (error) => this.#failed(error, address));
    socket.once('close', () => {
      clearTimeout(timer);
      // Whoever does not trust our certificate says so after the handshake, or only hangs up.
      if (isProven && !this.#isConnected && !this.#isRefused && !this.#isClosed)
        this.#tellDistrust(address, 'it hung up without a word after it saw our certificate');
      this.#closed();
    });
  }

  /** A welcome comes first, or a refusal; a refusal may also come later, when the peer has learned something. */
  #answered(socket: Socket, frame: Frame, address: PeerAddress): void {
    const { peer, logger } = this.#init;
    if (frame.type === 'welcome' && !this.#isConnected) {
      const reached = decodeWelcome(frame.payload);
      const { node, speaks, targetIncarnation } = this.#init.hello();
      // It may have come to be known only after the hello which database is the right one.
      if ((targetIncarnation ?? reached.incarnation) !== reached.incarnation)
        throw new FrameError('its database is another than the one recorded');
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
      this.#told.clear();
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

  /** Either end has refused the other: nothing is sent, and it is tried again after a while. */
  #unwanted(socket: Socket, address: PeerAddress, { code, text }: Refusal): void {
    this.#refusals += 1;
    this.#isRefused = true;
    this.#tellOnce(address, code, text);
    socket.destroy();
  }

  #tellOnce(address: PeerAddress, kind: string, text: string): void {
    const key = `${addressText(address)} ${kind}`;
    if (this.#told.has(key)) return;
    this.#told.add(key);
    const { logger, peer } = this.#init;
    // A node that was removed, here or there, is what somebody wanted.
    const isExpected = kind === 'removed' || kind === 'wrongTarget';
    logger[isExpected ? 'warn' : 'error']({ peer, address, refused: kind }, text);
  }

  /** Tells when a name begins not to resolve, and when it does again: in between every attempt says the same. */
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

  /** A peer that is not there is no news. One that cannot be trusted, or does not trust this node, is. */
  #failed(error: Error & { readonly code?: string }, address: PeerAddress): void {
    const { peer, logger, tls } = this.#init;
    logger.debug({ peer, err: error }, 'connection to peer failed');
    if (tls !== undefined && isDistrust(error)) this.#tellDistrust(address, error.message);
  }

  #tellDistrust(address: PeerAddress, why: string): void {
    this.#tellOnce(address, 'certificate', `no trust between this node and what answers there: ${why}`);
  }

  #closed(): void {
    const wasConnected = this.#isConnected;
    this.#isConnected = false;
    clearInterval(this.#keepAlive);
    this.#reached = undefined;
    this.#socket = undefined;
    if (wasConnected && performance.now() - this.#connectedAtMillis >= STABLE_MILLIS_MIN) this.#failures = 0;
    if (!this.#isRefused) this.#refusals = 0;
    // One that worked is where it most likely is still.
    if (!wasConnected) this.#turn += 1;
    if (wasConnected) this.#init.onDisconnected();
    if (this.#isClosed || !this.#init.mayRetry()) return;
    this.#retry = setTimeout(() => this.dial(), this.#reconnectMillis());
    this.#failures += 1;
  }

  /** Doubles up to a second, with jitter, so that a returning node is not met by everybody at once. */
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
