/**
 * One connection of the closed RESP load: it writes a pipeline, waits until all of it is answered, and writes the next.
 * It reads into its own buffer, so that a chunk costs no allocation.
 */
import { connect, type Socket } from 'node:net';
import { connect as connectSecurely } from 'node:tls';
import type { EncodedRequests } from './encoded-requests.ts';
import type { Latencies } from './latencies.ts';
import type { Address } from './load-job.ts';
import { ReplyCounter, type ReplyMeaning } from './reply-counter.ts';

const READ_BYTES = 65_536;

export interface RespConnectionInit {
  readonly address: Address;
  /** Set if the connection uses TLS and authenticates with this token. */
  readonly token: string | undefined;
  readonly meaning: ReplyMeaning;
  readonly requests: EncodedRequests;
  /** Index of the first pipeline to send. After the last one it starts over. */
  readonly first: number;
  readonly depth: number;
  /** Where to record the time from the write of a pipeline to its last answer. */
  readonly latencies: () => Latencies | undefined;
  readonly failed: (error: Error) => void;
}

export class RespConnection {
  readonly counter: ReplyCounter;
  readonly #init: RespConnectionInit;
  readonly #socket: Socket;
  #next: number;
  /** Total of answers at which the current pipeline is complete. */
  #awaitedAnswers = 0;
  #sentAtMillis = 0;
  #isClosed = false;
  #authenticated: (() => void) | undefined;

  private constructor(init: RespConnectionInit) {
    this.#init = init;
    this.#next = init.first;
    this.counter = new ReplyCounter(init.meaning);
    const options = {
      ...init.address,
      noDelay: true,
      onread: {
        buffer: Buffer.allocUnsafe(READ_BYTES),
        callback: (length: number, buffer: Uint8Array) => this.#read(buffer, length),
      },
    };
    this.#socket =
      init.token === undefined
        ? connect(options)
        : connectSecurely({ ...options, rejectUnauthorized: false });
  }

  static async open(init: RespConnectionInit): Promise<RespConnection> {
    const connection = new RespConnection(init);
    const socket = connection.#socket;
    await new Promise<void>((resolve, reject) => {
      socket.once(init.token === undefined ? 'connect' : 'secureConnect', resolve);
      socket.once('error', reject);
    });
    const ended = (error?: Error): void => {
      const { host, port } = init.address;
      if (!connection.#isClosed) init.failed(error ?? new Error(`${host}:${port} ended a connection`));
    };
    socket.on('error', ended);
    socket.on('close', () => ended());
    if (init.token !== undefined) await connection.#authenticate(init.token);
    return connection;
  }

  /** Sends the token. A wrong one shows in the answers to the requests. */
  async #authenticate(token: string): Promise<void> {
    const reported = new Promise<void>((resolve) => {
      this.#authenticated = resolve;
    });
    this.#socket.write(`AUTH ${token}\r\n`);
    await reported;
  }

  /** Starts the loop: each complete answer sends the next pipeline. */
  send(): void {
    const { requests, depth } = this.#init;
    this.#awaitedAnswers += depth;
    this.#sentAtMillis = performance.now();
    this.#socket.write(requests.pipeline(this.#next));
    this.#next = (this.#next + 1) % requests.pipelines;
  }

  close(): void {
    this.#isClosed = true;
    this.#socket.destroy();
  }

  /** Handles received bytes. Returns whether to go on reading. */
  #read(buffer: Uint8Array, length: number): boolean {
    if (this.#isClosed) return false;
    if (this.#authenticated !== undefined) {
      this.#authenticated();
      this.#authenticated = undefined;
      return true;
    }
    const { counter } = this;
    try {
      counter.feed(buffer, length);
    } catch (error) {
      this.#init.failed(error as Error);
      return false;
    }
    if (counter.answers < this.#awaitedAnswers) return true;
    if (counter.answers > this.#awaitedAnswers) {
      this.#init.failed(new Error(`${counter.answers} answers to ${this.#awaitedAnswers} requests`));
      return false;
    }
    this.#init.latencies()?.record(performance.now() - this.#sentAtMillis);
    this.send();
    return true;
  }
}
