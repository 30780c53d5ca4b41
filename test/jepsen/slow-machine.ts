/**
 * Notices when this machine has no time for the processes of a run: a timer here that comes late says that all of them
 * wait. Such a time is told as a band, like a fault, so that no judge calls slow what was not allowed to run.
 */
import { type CheckResult, Findings } from './checkers/result.ts';
import type { Operation } from './history.ts';
import { type NemesisBand, overlaps } from './nemesis-log.ts';

export const SLOW_MACHINE = 'slow-machine';

const EVERY_MILLIS = 20;
const LATE_MILLIS_MIN = 100;
/** Who waits for one turn of a busy processor waits for others too. */
const AFTERMATH_NANOS = 1e9;
const NANOS_PER_MILLI = 1e6;

export class SlowMachineWatch {
  readonly bands: NemesisBand[] = [];
  readonly #timer: NodeJS.Timeout;
  #lastNanos: number;

  constructor(nowNanos: () => number) {
    this.#lastNanos = nowNanos();
    this.#timer = setInterval(() => this.look(nowNanos()), EVERY_MILLIS);
  }

  look(now: number): void {
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

/** With more of a run than this too slow, what depends on time was not judged. */
const SLOW_SHARE_MAX = 0.5;

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
  if (slowNanos <= (to - from) * SLOW_SHARE_MAX) return findings.result();
  return findings.result(
    'unknown',
    'it was too slow for most of the run: what depends on time was not judged',
  );
}
