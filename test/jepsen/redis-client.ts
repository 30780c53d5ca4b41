/** A client of the Redis protocol: sends pipelines of commands, and records the moment of each answer. */
import { connect, type Socket } from 'node:net';
import { type Decoded, decodeReplies } from '../resp/decode-replies.ts';
import { brokenOutcome, nowNanos } from './http-attempt.ts';
import type { Outcome } from './history.ts';

/** The end of one command: a reply, or how its connection ended without one. */
export interface RedisEnding {
  readonly completeNanos: number;
  readonly ending: { readonly kind: 'reply'; readonly reply: Decoded } | Extract<Outcome, { kind: 'broken' }>;
}

interface Open {
  readonly endings: RedisEnding[];
  readonly count: number;
  bytes: Buffer;
  readonly done: (endings: readonly RedisEnding[]) => void;
  readonly timer: NodeJS.Timeout;
}

/**
 * One connection to one node at a time, and one pipeline at a time. A broken connection ends the pipeline, and the next
 * pipeline connects again.
 */
export class RedisClient {
  #socket: Socket | undefined;
  #port = 0;
  #isConnected = false;
  #open: Open | undefined;

  /**
   * Always resolves, with one ending per command.
   *
   * @param patienceMillis the pipeline is given up after it
   */
  async pipeline(
    port: number,
    commands: readonly (readonly string[])[],
    patienceMillis: number,
  ): Promise<readonly RedisEnding[]> {
    if (this.#open !== undefined) throw new Error('a pipeline is under way');
    return new Promise((done) => {
      const timer = setTimeout(() => this.#end(new Error('given up')), patienceMillis);
      this.#open = { endings: [], count: commands.length, bytes: Buffer.alloc(0), done, timer };
      this.#socketTo(port).write(Buffer.concat(commands.map(encoded)));
    });
  }

  close(): void {
    this.#end(new Error('closed'));
  }

  #socketTo(port: number): Socket {
    if (this.#socket !== undefined && this.#port === port) return this.#socket;
    this.#socket?.destroy();
    const socket = connect({ host: '127.0.0.1', port, noDelay: true });
    this.#socket = socket;
    this.#port = port;
    this.#isConnected = false;
    socket.on('connect', () => {
      if (socket === this.#socket) this.#isConnected = true;
    });
    socket.on('data', (bytes: Buffer) => {
      if (socket === this.#socket) this.#take(bytes);
    });
    const end = (error: Error): void => {
      if (socket === this.#socket) this.#end(error);
    };
    socket.on('error', end);
    socket.on('close', () => end(new Error('closed')));
    return socket;
  }

  #take(bytes: Buffer): void {
    const open = this.#open;
    if (open === undefined) return;
    open.bytes = Buffer.concat([open.bytes, bytes]);
    const completeNanos = nowNanos();
    const replies = decodeReplies(open.bytes);
    for (const reply of replies.slice(open.endings.length))
      open.endings.push({ completeNanos, ending: { kind: 'reply', reply } });
    if (open.endings.length >= open.count) this.#settle();
  }

  #end(error: Error): void {
    const socket = this.#socket;
    this.#socket = undefined;
    socket?.destroy();
    const open = this.#open;
    if (open === undefined) return;
    const outcome = brokenOutcome(error, this.#isConnected ? 'on a kept connection' : 'on a new connection');
    const completeNanos = nowNanos();
    if (outcome.kind !== 'broken') throw error;
    while (open.endings.length < open.count) open.endings.push({ completeNanos, ending: outcome });
    this.#settle();
  }

  #settle(): void {
    const open = this.#open;
    if (open === undefined) return;
    clearTimeout(open.timer);
    this.#open = undefined;
    open.done(open.endings);
  }
}

function encoded(command: readonly string[]): Buffer {
  const parts = command.map((argument) => `$${Buffer.byteLength(argument)}\r\n${argument}\r\n`);
  return Buffer.from(`*${command.length}\r\n${parts.join('')}`);
}
