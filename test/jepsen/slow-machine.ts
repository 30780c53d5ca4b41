/**
 * Notices when this machine has no time for the processes of a run: if a timer here comes late, all processes wait.
 * Such a time is recorded as a band, like a fault, so that no checker blames the cluster for the slow machine.
 */
import { type CheckResult, Findings } from './checkers/result.ts';
import type { Operation } from './history.ts';
import { type NemesisBand, overlaps } from './nemesis-log.ts';

export const SLOW_MACHINE = 'slow-machine';

const EVERY_MILLIS = 20;
const LATE_MILLIS_MIN = 100;
/** After a delay here, other processes may still wait for the processor for this long. */
const AFTERMATH_NANOS = 1e9;
const NANOS_PER_MILLI = 1e6;

export class SlowMachineWatch {
  readonly bands: NemesisBand[] = [];
  readonly #timer: NodeJS.Timeout;
  #lastNanos: number;

  constructor(nowNanos: () => number) {
    this.#lastNanos = nowNanos();
    this.#timer = setInterval(() => this.check(nowNanos()), EVERY_MILLIS);
  }

  check(now: number): void {
    const startNanos = this.#lastNanos;
    this.#lastNanos = now;
    if (now - startNanos < (EVERY_MILLIS + LATE_MILLIS_MIN) * NANOS_PER_MILLI) return;
    const endNanos = now + AFTERMATH_NANOS;
    const last = this.bands.at(-1);
    if (last !== undefined && overlaps(last, startNanos, now))
      this.bands[this.bands.length - 1] = { ...last, endNanos };
    else this.bands.push({ kind: SLOW_MACHINE, nodes: [], startNanos, endNanos });
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}

/** If the machine was too slow for more than this fraction of a run, the checks that depend on time are undecided. */
const SLOW_FRACTION_MAX = 0.5;

export function checkMachine(history: readonly Operation[], bands: readonly NemesisBand[]): CheckResult {
  const findings = new Findings('machine');
  let [from, to] = [Infinity, -Infinity];
  for (const { invokeNanos } of history) {
    from = Math.min(from, invokeNanos);
    to = Math.max(to, invokeNanos);
  }
  const slow = bands.filter(({ kind }) => kind === SLOW_MACHINE);
  const slowNanos = slow.reduce((sum, { startNanos, endNanos }) => sum + (endNanos ?? to) - startNanos, 0);
  findings.tally('slowMillis', slowNanos / NANOS_PER_MILLI);
  if (slowNanos <= (to - from) * SLOW_FRACTION_MAX) return findings.result();
  return findings.result(
    'unknown',
    'the machine was too slow for most of the run: checks of time were not judged',
  );
}
