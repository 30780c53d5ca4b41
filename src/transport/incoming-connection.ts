/**
 * One connection that a peer dialled, on which this node only receives: the hello that must come first, and then frames of the
 * version that was agreed on. It cuts, times and closes; who is welcome, and what frames mean, others decide.
 */
import type { Socket } from 'node:net';
import type { NodeId } from '../../raft/types.ts';
import {
  encodeFrame,
  FRAME_PAYLOAD_BYTES_MAX,
  type Frame,
  FrameDecoder,
  FrameError,
  type PeerFrameType,
} from '../wire/frame.ts';
import { decodeHello, encodeRefusal, HELLO_BYTES_MAX, type Hello, type Refusal } from '../wire/hello.ts';
import { KEEP_ALIVE_MILLIS } from './dialer.ts';

export interface IncomingConnectionInit {
  readonly socket: Socket;
  /** Who it is, by its certificate; undefined without TLS. */
  readonly proven: NodeId | undefined;
  readonly tag: Uint8Array;
  /** The version that is spoken from now on; undefined: it is refused. A FrameError thrown here closes the connection. */
  readonly introduced: (hello: Hello) => number | undefined;
  /** A frame of a peer that was welcome. A FrameError thrown here closes the connection. */
  readonly received: (hello: Hello, type: PeerFrameType, payload: Uint8Array) => void;
  /** @param hello undefined: it did not get so far as to say one */
  readonly bad: (error: FrameError, hello: Hello | undefined) => void;
  /** Nothing came for long: the connection is closed. */
  readonly silent: (hello: Hello | undefined) => void;
  readonly failed: (error: Error, hello: Hello | undefined) => void;
  readonly closed: (hello: Hello | undefined) => void;
}

/** A connection that has not said who it is by then is closed. */
const HELLO_MILLIS_MAX = 5_000;
/** Who dialled says more often that it lives; one that is silent for so long is gone, though nobody closed the connection. */
const SILENT_MILLIS_MAX = 5 * KEEP_ALIVE_MILLIS;
/** Whoever was refused has so long to read why. */
const REFUSED_MILLIS_MAX = 1_000;

/** It is told why, and hung up on. */
export function refuse(socket: Socket, tag: Uint8Array, refusal: Refusal): void {
  socket.end(encodeFrame('refused', encodeRefusal(refusal), tag));
  socket.setTimeout(REFUSED_MILLIS_MAX);
}

export class IncomingConnection {
  readonly #init: IncomingConnectionInit;
  readonly #decoder: FrameDecoder;
  readonly #helloTimer: NodeJS.Timeout;
  #hello: Hello | undefined;

  /** From now on it is read. */
  constructor(init: IncomingConnectionInit) {
    const { socket, tag, silent, failed, closed } = init;
    this.#init = init;
    this.#decoder = new FrameDecoder(tag, HELLO_BYTES_MAX);
    this.#helloTimer = setTimeout(() => socket.destroy(), HELLO_MILLIS_MAX);
    socket.setNoDelay(true);
    socket.setKeepAlive(true);
    socket.on('data', (bytes: Buffer) => this.#read(bytes));
    socket.setTimeout(SILENT_MILLIS_MAX, () => {
      socket.destroy();
      if (!socket.writableEnded) silent(this.#hello);
    });
    socket.on('error', (error) => failed(error, this.#hello));
    socket.once('close', () => {
      clearTimeout(this.#helloTimer);
      closed(this.#hello);
    });
  }

  #read(bytes: Buffer): void {
    const { socket, bad } = this.#init;
    try {
      if (!socket.destroyed && !socket.writableEnded) this.#decoder.push(bytes, (frame) => this.#take(frame));
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      bad(error, this.#hello);
      socket.destroy();
    }
  }

  #take({ type, payload }: Frame): void {
    const { socket, received } = this.#init;
    // An earlier frame of the same read may have been the last one that is listened to.
    if (socket.destroyed || socket.writableEnded) return;
    if (this.#hello === undefined) {
      clearTimeout(this.#helloTimer);
      if (type !== 'hello') throw new FrameError(`expected hello first, got ${type}`);
      this.#introduced(decodeHello(payload));
      return;
    }
    if (type === 'hello' || type === 'welcome' || type === 'refused')
      throw new FrameError(`${type} is said once, at the beginning`);
    if (type !== 'alive') received(this.#hello, type, payload);
  }

  #introduced(said: Hello): void {
    const { proven, introduced } = this.#init;
    if (proven !== undefined && said.node !== proven)
      throw new FrameError(`its certificate is of node ${proven}, and it says that it is node ${said.node}`);
    const version = introduced(said);
    if (version === undefined) return;
    this.#hello = said;
    this.#decoder.version = version;
    this.#decoder.payloadBytesMax = FRAME_PAYLOAD_BYTES_MAX;
  }
}
