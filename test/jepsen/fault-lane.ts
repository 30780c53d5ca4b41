/**
 * One direction of one connection through a fault proxy. Reads from one socket and passes the data on to the other as
 * the faults of the direction allow. It opens and closes no connection.
 */
import type { Socket } from 'node:net';
import type { RandomBelow } from '../../raft/core-state.ts';
import { type Direction, holdsBack } from './faults.ts';

/** The bytes that a proxy holds back per connection and direction before it stops reading. */
const QUEUE_BYTES_MAX = 4 << 20;
/** A throttled direction passes on pieces worth this many milliseconds, but no smaller than the minimum. */
const PIECE_MILLIS = 20;
const PIECE_BYTES_MIN = 256;

type Item = { readonly dueMillis: number } & (
  | { readonly kind: 'bytes'; readonly bytes: Buffer }
  | { readonly kind: 'end' }
  | { readonly kind: 'reset' }
);

export class Lane {
  readonly #direction: Direction;
  readonly #random: RandomBelow;
  readonly #source: Socket;
  readonly #reset: () => void;
  /** Undefined until the other side is connected. */
  #sink: Socket | undefined;
  #queue: Item[] = [];
  #queuedBytes = 0;
  /** The due time of the newest piece. Later pieces are passed on no earlier, which keeps the order. */
  #lastDueMillis = 0;
  #timer: NodeJS.Timeout | undefined;
  #isSinkFull = false;
  #hasHole = false;

  constructor(direction: Direction, random: RandomBelow, source: Socket, reset: () => void) {
    this.#direction = direction;
    this.#random = random;
    this.#source = source;
    this.#reset = reset;
    source.on('data', (bytes: Buffer) => this.#receive(bytes));
    source.once('end', () => this.#close('end'));
    source.once('error', () => this.#close('reset'));
  }

  connectTo(sink: Socket): void {
    this.#sink = sink;
    sink.on('drain', () => {
      this.#isSinkFull = false;
      this.#pump();
    });
    this.#pump();
  }

  /** Called when the faults have changed. */
  changed(): void {
    const { faults } = this.#direction;
    if (faults.blackHole === true) this.#loseQueue();
    else if (this.#hasHole) {
      this.#reset();
      return;
    }
    const isSlow = faults.delayMillis !== undefined || faults.bytesPerSecond !== undefined;
    if (!isSlow) {
      this.#queue = this.#queue.map((item) => ({ ...item, dueMillis: 0 }));
      this.#lastDueMillis = 0;
    }
    this.#pump();
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#queue = [];
    this.#queuedBytes = 0;
  }

  #receive(bytes: Buffer): void {
    const { faults } = this.#direction;
    if (faults.blackHole === true) {
      this.#hasHole = true;
      this.#direction.bytesLost += bytes.byteLength;
      return;
    }
    if (faults.resetOneIn !== undefined && bytes.byteLength > 1 && this.#random(faults.resetOneIn) === 0) {
      this.#enqueue(bytes.subarray(0, 1 + this.#random(bytes.byteLength - 1)));
      this.#close('reset');
      return;
    }
    if (faults.flipOneIn !== undefined && this.#random(faults.flipOneIn) === 0) {
      const at = this.#random(bytes.byteLength);
      bytes.writeUInt8(bytes.readUInt8(at) ^ (1 << this.#random(8)), at);
      this.#direction.bitsFlipped += 1;
    }
    this.#enqueue(bytes);
  }

  #close(kind: 'end' | 'reset'): void {
    // During a black hole the end of the connection is not passed on, and the connection cannot go on after it.
    if (this.#direction.faults.blackHole === true) {
      this.#hasHole = true;
      return;
    }
    this.#queue.push({ kind, dueMillis: Math.max(this.#lastDueMillis, performance.now() + this.#delay()) });
    this.#pump();
  }

  #delay(): number {
    const { delayMillis = 0, jitterMillis = 0 } = this.#direction.faults;
    return delayMillis + (jitterMillis > 0 ? this.#random(jitterMillis + 1) : 0);
  }

  #enqueue(bytes: Buffer): void {
    const { bytesPerSecond } = this.#direction.faults;
    const pieceBytes =
      bytesPerSecond === undefined
        ? bytes.byteLength
        : Math.max(PIECE_BYTES_MIN, Math.floor((bytesPerSecond * PIECE_MILLIS) / 1_000));
    const earliestMillis = performance.now() + this.#delay();
    for (let at = 0; at < bytes.byteLength; at += pieceBytes) {
      const piece = bytes.subarray(at, at + pieceBytes);
      const sendMillis = bytesPerSecond === undefined ? 0 : (piece.byteLength / bytesPerSecond) * 1_000;
      this.#lastDueMillis = Math.max(this.#lastDueMillis, earliestMillis) + sendMillis;
      this.#queue.push({ kind: 'bytes', bytes: piece, dueMillis: this.#lastDueMillis });
    }
    this.#queuedBytes += bytes.byteLength;
    this.#pump();
  }

  #loseQueue(): void {
    if (this.#queue.length === 0) return;
    this.#hasHole = true;
    this.#direction.bytesLost += this.#queuedBytes;
    this.#queue = [];
    this.#queuedBytes = 0;
  }

  /** Passes on what is due, and pauses or resumes reading. */
  #pump(): void {
    clearTimeout(this.#timer);
    const sink = this.#sink;
    const { faults } = this.#direction;
    let passed = 0;
    while (sink !== undefined && !this.#isSinkFull && !holdsBack(faults)) {
      const item = this.#queue[passed];
      if (item === undefined) break;
      const waitMillis = item.dueMillis - performance.now();
      if (waitMillis > 0) {
        this.#timer = setTimeout(() => this.#pump(), waitMillis);
        break;
      }
      passed += 1;
      if (item.kind === 'reset') {
        this.#direction.resets += 1;
        this.#reset();
        return;
      }
      if (item.kind === 'end') sink.end();
      else this.#pass(item.bytes, sink);
    }
    if (passed > 0) this.#queue.splice(0, passed);
    const isFull = this.#queuedBytes >= QUEUE_BYTES_MAX && faults.blackHole !== true;
    if (faults.neverRead === true || isFull) this.#source.pause();
    else this.#source.resume();
  }

  #pass(bytes: Buffer, sink: Socket): void {
    this.#queuedBytes -= bytes.byteLength;
    if (sink.destroyed || sink.writableEnded) return;
    this.#direction.bytesPassed += bytes.byteLength;
    this.#isSinkFull = !sink.write(bytes);
  }
}
