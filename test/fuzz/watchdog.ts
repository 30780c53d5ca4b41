/**
 * Detects an input on which a parser hangs. The fuzzer announces each input, and a second thread checks that it
 * changes.
 */
import { Worker } from 'node:worker_threads';
import { TARGETS } from './targets/all.ts';
import type { Target } from './target.ts';

const INPUT_BYTES_MAX = 65_536;
/** Layout of the shared memory: the number of inputs, the target and length of the last one, then its bytes. */
export const COUNT = 0;
export const TARGET = 1;
export const LENGTH = 2;
export const HEAD_BYTES = 12;

export class Watchdog {
  readonly #memory = new SharedArrayBuffer(HEAD_BYTES + INPUT_BYTES_MAX);
  readonly #head = new Int32Array(this.#memory, 0, HEAD_BYTES / 4);
  readonly #bytes = new Uint8Array(this.#memory, HEAD_BYTES);
  readonly #thread: Worker;

  constructor() {
    this.#thread = new Worker(new URL('watchdog-thread.js', import.meta.url), { workerData: this.#memory });
    this.#thread.unref();
  }

  readonly begins = (target: Target, input: Buffer): void => {
    this.#bytes.set(input.subarray(0, INPUT_BYTES_MAX));
    this.#head[TARGET] = TARGETS.indexOf(target);
    this.#head[LENGTH] = Math.min(input.length, INPUT_BYTES_MAX);
    Atomics.add(this.#head, COUNT, 1);
  };

  async end(): Promise<void> {
    await this.#thread.terminate();
  }
}
