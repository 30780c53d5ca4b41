/**
 * Measures how busy the machine is during a test. Tests with a time limit use it to widen the limit on a busy machine. Load
 * by the test and its own nodes does not widen it.
 */
import { performance } from 'node:perf_hooks';

const CHECK_EVERY_MILLIS = 500;
const SPIN_MILLIS = 20;
/** Four processes of one test on two cores slow each other down by this factor. */
const OWN_FRACTION_MAX = 2;
/** A request passes this many processes one after the other, and waits in each. */
const PROCESSES = 3;

/** Measures when it is created, when `slowness` is called, and periodically in between. */
export class BusyWatch {
  #spentMillis = 0;
  #cpuMillis = 0;
  readonly #timer: NodeJS.Timeout;

  constructor() {
    this.#check();
    this.#timer = setInterval(() => this.#check(), CHECK_EVERY_MILLIS).unref();
  }

  /** How many times longer work took since the creation than on an idle machine, at least 1. Ends the watch. */
  slowness(): number {
    clearInterval(this.#timer);
    this.#check();
    const fraction = this.#spentMillis / this.#cpuMillis;
    if (fraction < OWN_FRACTION_MAX) return 1;
    console.log(
      `the machine is busy: a millisecond of work takes ${fraction.toFixed(1)} ms, so time limits are wider`,
    );
    return PROCESSES * fraction;
  }

  #check(): void {
    const startedMillis = performance.now();
    const before = process.cpuUsage();
    let cpuMillis = 0;
    while (cpuMillis < SPIN_MILLIS) {
      const { user, system } = process.cpuUsage(before);
      cpuMillis = (user + system) / 1_000;
    }
    this.#cpuMillis += cpuMillis;
    this.#spentMillis += performance.now() - startedMillis;
  }
}
