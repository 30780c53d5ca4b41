/** How much the main thread of this process works, and its machine does not. It only asks the system and the event loop. */
import { readFileSync } from 'node:fs';
import { cpus } from 'node:os';

/** Linux tells the processor time of a thread here, of `self` that of the main thread, in nanoseconds. */
const MAIN_THREAD_TIMES = '/proc/self/schedstat';
const NANOS_PER_MILLI = 1_000_000;
const MICROS_PER_MILLI = 1_000;

/**
 * Each call returns the share of the time since the call before in which the main thread worked: 0 to 1. Where the system does not
 * tell the time of one thread, it is that of the whole process, or that in which the event loop did not wait, whichever is less:
 * the thread worked no longer than either.
 */
export function busyShare(): () => number {
  let before = timesNow();
  let loop = performance.eventLoopUtilization();
  return () => {
    const now = timesNow();
    const { utilization } = performance.eventLoopUtilization(loop);
    const millis = now.atMillis - before.atMillis;
    const share = millis === 0 ? 0 : (now.workedMillis - before.workedMillis) / millis;
    before = now;
    loop = performance.eventLoopUtilization();
    return Math.min(1, utilization, share);
  };
}

function timesNow(): { readonly workedMillis: number; readonly atMillis: number } {
  return { workedMillis: mainThreadMillis() ?? processMillis(), atMillis: performance.now() };
}

function mainThreadMillis(): number | undefined {
  try {
    const [nanos] = readFileSync(MAIN_THREAD_TIMES, 'utf8').split(' ');
    const millis = Number(nanos) / NANOS_PER_MILLI;
    // Some systems have the file, and count nothing.
    return millis > 0 ? millis : undefined;
  } catch {
    return undefined;
  }
}

function processMillis(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / MICROS_PER_MILLI;
}

/** Each call returns how many processors of this machine nobody used since the call before. */
export function idleProcessors(): () => number {
  let before = processorTimes();
  return () => {
    const now = processorTimes();
    const share = now.all === before.all ? 0 : (now.idle - before.idle) / (now.all - before.all);
    before = now;
    return share * now.count;
  };
}

function processorTimes(): { readonly idle: number; readonly all: number; readonly count: number } {
  let idle = 0;
  let all = 0;
  const processors = cpus();
  for (const { times } of processors) {
    idle += times.idle;
    all += times.idle + times.user + times.nice + times.sys + times.irq;
  }
  return { idle, all, count: processors.length };
}
