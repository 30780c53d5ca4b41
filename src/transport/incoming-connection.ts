/**
 * One connection that a peer dialled. This node only receives on it: first the hello, then frames of the agreed
 * version. Admission and the meaning of frames are up to the callbacks.
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

/** What `IncomingConnection` needs. */
export interface IncomingConnectionInit {
  readonly socket: Socket;
  /** The node that the certificate is for; undefined without TLS. */
  readonly proven: NodeId | undefined;
  readonly tag: Uint8Array;
  /**
   * Admits or refuses a peer. Returns the agreed version; undefined: it is refused. A FrameError closes the
   * connection.
   */
  readonly introduced: (hello: Hello) => number | undefined;
  /** Handles a frame of an admitted peer. A FrameError closes the connection. */
  readonly received: (hello: Hello, type: PeerFrameType, payload: Uint8Array) => void;
  /** A frame was malformed. @param hello undefined: the peer has not said hello */
  readonly bad: (error: FrameError, hello: Hello | undefined) => void;
  /** Nothing was received for too long, so the connection is closed. */
  readonly silent: (hello: Hello | undefined) => void;
  readonly failed: (error: Error, hello: Hello | undefined) => void;
  readonly closed: (hello: Hello | undefined) => void;
}

/** Time for the hello; after that the connection is closed. */
const HELLO_MILLIS_MAX = 5_000;
/**
 * The dialling node sends a keep-alive more often than this. After so long a silence it is gone, even if the
 * connection is not closed.
 */
const SILENT_MILLIS_MAX = 5 * KEEP_ALIVE_MILLIS;
/** Time for a refused peer to read the reason. */
const REFUSED_MILLIS_MAX = 1_000;

/** Sends the reason of a refusal and closes the connection. */
export function refuse(socket: Socket, tag: Uint8Array, refusal: Refusal): void {
  socket.end(encodeFrame('refused', encodeRefusal(refusal), tag));
  socket.setTimeout(REFUSED_MILLIS_MAX);
}

/** A connection that a peer dialled. */
export class IncomingConnection {
  readonly #init: IncomingConnectionInit;
  readonly #decoder: FrameDecoder;
  readonly #helloTimer: NodeJS.Timeout;
  #hello: Hello | undefined;

  /** Starts reading. */
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
    // An earlier frame of the same read may have closed the connection.
    if (socket.destroyed || socket.writableEnded) return;
    if (this.#hello === undefined) {
      clearTimeout(this.#helloTimer);
      if (type !== 'hello') throw new FrameError(`expected hello first, got ${type}`);
      this.#introduced(decodeHello(payload));
      return;
    }
    if (type === 'hello' || type === 'welcome' || type === 'refused')
      throw new FrameError(`${type} may come only once, at the beginning`);
    if (type !== 'alive') received(this.#hello, type, payload);
  }

  #introduced(said: Hello): void {
    const { proven, introduced } = this.#init;
    if (proven !== undefined && said.node !== proven)
      throw new FrameError(`its certificate is for node ${proven}, but its hello says node ${said.node}`);
    const version = introduced(said);
    if (version === undefined) return;
    this.#hello = said;
    this.#decoder.version = version;
    this.#decoder.payloadBytesMax = FRAME_PAYLOAD_BYTES_MAX;
  }
}
