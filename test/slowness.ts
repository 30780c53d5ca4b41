/** How busy the machine is, for tests that say how long something may take: such a bound holds for a machine with time. */
import { performance } from 'node:perf_hooks';

const SPIN_MILLIS = 20;
/** Below it is the noise of an idle machine. */
const BUSY_MIN = 1.5;
/** Work of several processes, one after the other, waits at each of them. */
const PROCESSES = 3;

/** How much longer things may take just now than on a machine that has nothing else to do. 1 on such a one. */
export function slowness(): number {
  const startedMillis = performance.now();
  const before = process.cpuUsage();
  let cpuMillis = 0;
  while (cpuMillis < SPIN_MILLIS) {
    const { user, system } = process.cpuUsage(before);
    cpuMillis = (user + system) / 1_000;
  }
  const share = (performance.now() - startedMillis) / cpuMillis;
  if (share < BUSY_MIN) return 1;
  console.log(`the machine is busy: what takes a millisecond takes ${share.toFixed(1)}, so bounds are wider`);
  return PROCESSES * share;
}
