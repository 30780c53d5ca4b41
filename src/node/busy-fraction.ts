/** Measures how busy the main thread of this process is, and how much of the machine is idle. */
import { readFileSync } from 'node:fs';
import { cpus } from 'node:os';

/** On Linux this file has the processor time of the main thread in nanoseconds. */
const MAIN_THREAD_TIMES = '/proc/self/schedstat';
const NANOS_PER_MILLI = 1_000_000;
const MICROS_PER_MILLI = 1_000;

/**
 * Each call returns the fraction of the time since the last call in which the main thread worked, 0 to 1. If the
 * system does not report the time of a single thread, the result is the smaller of two upper bounds: processor time
 * of the process, and time in which the event loop did not wait.
 */
export function busyFraction(): () => number {
  let before = timesNow();
  let loop = performance.eventLoopUtilization();
  return () => {
    const now = timesNow();
    const { utilization } = performance.eventLoopUtilization(loop);
    const millis = now.atMillis - before.atMillis;
    const fraction = millis === 0 ? 0 : (now.workedMillis - before.workedMillis) / millis;
    before = now;
    loop = performance.eventLoopUtilization();
    return Math.min(1, utilization, fraction);
  };
}

function timesNow(): { readonly workedMillis: number; readonly atMillis: number } {
  return { workedMillis: mainThreadMillis() ?? processMillis(), atMillis: performance.now() };
}

function mainThreadMillis(): number | undefined {
  try {
    const [nanos] = readFileSync(MAIN_THREAD_TIMES, 'utf8').split(' ');
    const millis = Number(nanos) / NANOS_PER_MILLI;
    // Some systems have the file but count nothing in it.
    return millis > 0 ? millis : undefined;
  } catch {
    return undefined;
  }
}

function processMillis(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / MICROS_PER_MILLI;
}

/** Each call returns how many processors of the machine were idle since the last call. */
export function idleProcessors(): () => number {
  let before = processorTimes();
  return () => {
    const now = processorTimes();
    const fraction = now.all === before.all ? 0 : (now.idle - before.idle) / (now.all - before.all);
    before = now;
    return fraction * now.count;
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
