/**
 * Takes heap snapshots and CPU profiles of this process, one at a time; each is announced in the log before it
 * begins. The result is streamed and never written to a file. The caller decides who may ask.
 */
import type { MonotonicClock } from '../api/clocks.ts';
import { setTimeout as delay } from 'node:timers/promises';
import { getHeapSnapshot } from 'node:v8';
import type { Logger } from 'pino';
import type { DiagnosticsApi, OpenDiagnosis, WantedDiagnosis } from '../api/api-listener.ts';

/** What `Diagnostics` needs. */
export interface DiagnosticsInit extends MonotonicClock {
  readonly logger: Logger;
  /** A profile is aborted when the node stops. */
  readonly isStopping: () => boolean;
}

/** How often a profile checks whether the node stops. */
const CHECK_MILLIS = 250;

/** The diagnostics of one node. */
export class Diagnostics implements DiagnosticsApi {
  readonly #init: DiagnosticsInit;
  #isBusy = false;

  constructor(init: DiagnosticsInit) {
    this.#init = init;
  }

  readonly diagnose = (wanted: WantedDiagnosis): OpenDiagnosis | undefined => {
    if (this.#isBusy) return undefined;
    this.#isBusy = true;
    const left = new AbortController();
    return {
      chunks: this.#logged(wanted, left.signal),
      close: () => {
        if (!left.signal.aborted) this.#isBusy = false;
        left.abort();
      },
    };
  };

  /** Passes the chunks on and logs their kind, size and time, but none of their contents. */
  async *#logged(wanted: WantedDiagnosis, left: AbortSignal): AsyncGenerator<Uint8Array> {
    const { logger, monotonicMillis } = this.#init;
    const startedMillis = monotonicMillis();
    const isHeap = wanted.kind === 'heapSnapshot';
    logger.warn(
      wanted,
      isHeap
        ? 'taking a heap snapshot: the node is blocked meanwhile, and loses its leaderships if that takes long'
        : 'taking a CPU profile',
    );
    let bytes = 0;
    let takenMillis = Number.NaN;
    let isWhole = false;
    try {
      for await (const chunk of isHeap ? getHeapSnapshot() : this.#cpuProfile(wanted.seconds, left)) {
        if (bytes === 0) takenMillis = monotonicMillis() - startedMillis;
        bytes += (chunk as Uint8Array).byteLength;
        yield chunk as Uint8Array;
      }
      isWhole = true;
    } finally {
      const millis = Math.round(monotonicMillis() - startedMillis);
      const fields = { kind: wanted.kind, bytes, millis, takenMillis: Math.round(takenMillis) };
      logger.warn(fields, isWhole ? 'diagnosis sent' : 'diagnosis aborted');
    }
  }

  async *#cpuProfile(seconds: number, left: AbortSignal): AsyncGenerator<Uint8Array> {
    const { monotonicMillis, isStopping } = this.#init;
    const { Session } = await import('node:inspector/promises');
    const session = new Session();
    session.connect();
    try {
      await session.post('Profiler.enable');
      await session.post('Profiler.start');
      const endMillis = monotonicMillis() + 1_000 * seconds;
      for (let rest = 1_000 * seconds; rest > 0; rest = endMillis - monotonicMillis()) {
        await delay(Math.min(rest, CHECK_MILLIS), undefined, { signal: left });
        if (isStopping()) throw new Error('the node stops');
      }
      const { profile } = await session.post('Profiler.stop');
      yield Buffer.from(JSON.stringify(profile));
    } finally {
      session.disconnect();
    }
  }
}
