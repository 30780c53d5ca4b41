/**
 * The requests that wait to be sent to one node, in order, and the number of batches on their way to it. It sends
 * nothing itself.
 */
import { BATCH_BYTES_MAX } from './batch.ts';

/** The part of a request that the queue needs. */
export interface Queued {
  /** The request as JSON text. `bytes` is its length in UTF-8. */
  readonly body: string;
  readonly bytes: number;
  /** False: the request was settled while it waited, so skip it. */
  readonly isWaiting: boolean;
}

/** Settled requests are removed when the queue has grown to this length, and then each time it has doubled. */
const LET_GO_AT = 1_024;

/** A first-in, first-out queue with a bounded number of batches in flight. */
export class NodeQueue<T extends Queued> {
  readonly origin: string;
  #waiting: T[] = [];
  /** Index of the next request in `#waiting`. Those before it were taken. */
  #next = 0;
  #batches = 0;
  #letGoAt = LET_GO_AT;

  constructor(origin: string) {
    this.origin = origin;
  }

  push(request: T): void {
    this.#waiting.push(request);
    if (this.#waiting.length < this.#letGoAt) return;
    this.#waiting = this.takeAll();
    this.#letGoAt = Math.max(LET_GO_AT, 2 * this.#waiting.length);
  }

  /**
   * Takes the next batch of at least one request, unless too many batches are in flight. The batch counts as in flight
   * until `arrived` is called.
   */
  maybeTake({
    batchMax,
    batchesPerNodeMax,
  }: {
    batchMax: number;
    batchesPerNodeMax: number;
  }): T[] | undefined {
    if (this.#batches >= batchesPerNodeMax) return undefined;
    const batch: T[] = [];
    let bytes = 0;
    for (; this.#next < this.#waiting.length && batch.length < batchMax; this.#next += 1) {
      const request = this.#waiting[this.#next];
      if (request === undefined || !request.isWaiting) continue;
      // Plus a comma.
      bytes += request.bytes + 1;
      if (batch.length > 0 && bytes > BATCH_BYTES_MAX) break;
      batch.push(request);
    }
    if (this.#next === this.#waiting.length) this.#clear();
    if (batch.length === 0) return undefined;
    this.#batches += 1;
    return batch;
  }

  arrived(): void {
    this.#batches -= 1;
  }

  /** Removes and returns all waiting requests, so that they can be sent to another node. */
  takeAll(): T[] {
    const all = this.#waiting.slice(this.#next).filter(({ isWaiting }) => isWaiting);
    this.#clear();
    return all;
  }

  /** Number of requests in memory, settled ones included. */
  get length(): number {
    return this.#waiting.length;
  }

  get isIdle(): boolean {
    return this.#batches === 0 && this.#waiting.length === 0;
  }

  #clear(): void {
    this.#waiting = [];
    this.#next = 0;
  }
}
