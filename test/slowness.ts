/**
 * How busy the machine is while a test works, for tests that say how long something may take: such a bound holds for a
 * machine with time. What the test and its own nodes take from each other is no excuse.
 */
import { performance } from 'node:perf_hooks';

const CHECK_EVERY_MILLIS = 500;
const SPIN_MILLIS = 20;
/** Four processes of one test on two cores wait that long for each other. */
const OWN_FRACTION_MAX = 2;
/** Work of several processes, one after the other, waits at each of them. */
const PROCESSES = 3;

/** Looks when it is made, when it is asked, and now and then in between. */
export class BusyWatch {
  #spentMillis = 0;
  #cpuMillis = 0;
  readonly #timer: NodeJS.Timeout;

  constructor() {
    this.#peek();
    this.#timer = setInterval(() => this.#peek(), CHECK_EVERY_MILLIS).unref();
  }

  /** How much longer things could take since it was made than on a machine that has nothing else to do: 1 there. Ends it. */
  slowness(): number {
    clearInterval(this.#timer);
    this.#peek();
    const fraction = this.#spentMillis / this.#cpuMillis;
    if (fraction < OWN_FRACTION_MAX) return 1;
    console.log(
      `the machine is busy: what takes a millisecond takes ${fraction.toFixed(1)}, so bounds are wider`,
    );
    return PROCESSES * fraction;
  }

  #peek(): void {
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
