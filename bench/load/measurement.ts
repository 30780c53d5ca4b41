/** The course of one measurement, the same for all kinds of load: warm up, then count for a stated time. */
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
    // Whoever runs the measurement hears of it; nobody else need.
    this.#failed.catch(() => undefined);
  }

  /** Where latencies go now; undefined while nothing is measured. */
  get latencies(): Latencies | undefined {
    return this.#latencies;
  }

  /** The load cannot go on: there is no result. */
  fail(error: Error): void {
    this.#fail(error);
  }

  /** Waits for something, but not if the load fails before. */
  async unlessFailed<T>(something: Promise<T>): Promise<T> {
    return Promise.race([something, this.#failed]);
  }

  /** @param counts of everything so far, since the load began */
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
