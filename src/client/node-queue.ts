/** What waits to be sent to one node, in order, and how many batches are on their way to it. It sends nothing itself. */
import { BATCH_BYTES_MAX } from './batch.ts';

/** What a queue knows of a request. */
export interface Queued {
  /** JSON, and its length in UTF-8. */
  readonly body: string;
  readonly bytes: number;
  /** False: it was settled while it waited. */
  readonly isWaiting: boolean;
}

/** Those that were settled while they waited are let go when there are so many, and then when there are twice as many. */
const LET_GO_AT = 1_024;

export class NodeQueue<T extends Queued> {
  readonly origin: string;
  #waiting: T[] = [];
  /** Of `#waiting`: those before are taken. */
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

  /** The next batch, at least one request, if there is room for it on the way; it counts as being there until `arrived`. */
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
      // And a comma.
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

  /** All that wait, to be sent elsewhere. */
  takeAll(): T[] {
    const all = this.#waiting.slice(this.#next).filter(({ isWaiting }) => isWaiting);
    this.#clear();
    return all;
  }

  /** Requests that it holds on to. */
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
