/** The steps of one measurement, the same for all kinds of load: warm up, then count for a given time. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Latencies } from './latencies.ts';
import type { LoadResult } from './load-job.ts';

export interface Counts {
  readonly grants: number;
  readonly denials: number;
  readonly errors: number;
}

export interface MeasurementInit {
  readonly warmUpMillis: number;
  readonly measuredMillis: number;
  /** Called when the load is warm and counting begins. */
  readonly measuring: () => void;
}

export class Measurement {
  readonly #init: MeasurementInit;
  #latencies: Latencies | undefined;
  #fail: (error: Error) => void = () => undefined;
  readonly #failed: Promise<never>;

  constructor(init: MeasurementInit) {
    this.#init = init;
    this.#failed = new Promise((_, reject) => {
      this.#fail = reject;
    });
    // `run` reports the failure; this handler only prevents an unhandled rejection.
    this.#failed.catch(() => undefined);
  }

  /** Where to record latencies; undefined while nothing is measured. */
  get latencies(): Latencies | undefined {
    return this.#latencies;
  }

  /** Fails the measurement: the load cannot go on. */
  fail(error: Error): void {
    this.#fail(error);
  }

  /** Waits for a promise, or throws as soon as the load fails. */
  async unlessFailed<T>(something: Promise<T>): Promise<T> {
    return Promise.race([something, this.#failed]);
  }

  /** Runs the measurement. @param counts returns the totals since the load began */
  async run(counts: () => Counts): Promise<LoadResult> {
    const { warmUpMillis, measuredMillis, measuring } = this.#init;
    await this.unlessFailed(sleep(warmUpMillis));
    const latencies = new Latencies();
    const before = counts();
    const cpuBefore = process.cpuUsage();
    const startedMillis = performance.now();
    this.#latencies = latencies;
    measuring();
    await this.unlessFailed(sleep(measuredMillis));
    this.#latencies = undefined;
    const { user, system } = process.cpuUsage(cpuBefore);
    const after = counts();
    return {
      grants: after.grants - before.grants,
      denials: after.denials - before.denials,
      errors: after.errors - before.errors,
      seconds: (performance.now() - startedMillis) / 1_000,
      latencies: latencies.encode(),
      loadCpuSeconds: (user + system) / 1_000_000,
    };
  }
}
