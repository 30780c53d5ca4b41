/** Adds up the results of many runs. */
import { createHash } from 'node:crypto';
import type { RunResult } from './run.ts';

export interface TotalsJson {
  readonly seeds: number;
  readonly steps: number;
  readonly simulatedHours: number;
  readonly requests: number;
  readonly grants: number;
  readonly decided: number;
  readonly faults: Readonly<Record<string, number>>;
  /** How often rare worlds were met. */
  readonly coverage: Readonly<Record<string, number>>;
  readonly violations: number;
  readonly trace: string;
}

/** A world should decide this fraction of its requests: undecided ones exercise few laws. */
const DECISIVE = 0.8;

export class Totals {
  seeds = 0;
  steps = 0;
  violations = 0;
  #millis = 0;
  #requests = 0;
  #grants = 0;
  #denials = 0;
  #unlimited = 0;
  /** Seeds with most requests decided. */
  #decisive = 0;
  #unavailable = 0;
  #atCapacity = 0;
  #conflicts = 0;
  readonly #faults = new Map<string, number>();
  readonly #coverage = new Map<string, number>();
  readonly #hashes = new Map<number, string>();

  add(result: RunResult): void {
    this.seeds += 1;
    this.#hashes.set(result.seed, result.hash);
    this.steps += result.steps;
    this.#millis += result.simulatedMillis;
    this.#requests += result.requests;
    this.#grants += result.grants;
    this.#denials += result.denials;
    this.#unlimited += result.unlimited;
    if (decidedOf(result) > DECISIVE * result.requests) this.#decisive += 1;
    this.#unavailable += result.unavailable;
    this.#atCapacity += result.atCapacity;
    this.#conflicts += result.conflicts;
    if (result.violation !== undefined) this.violations += 1;
    addAll(this.#faults, result.faults);
    addAll(this.#coverage, result.coverage);
  }

  /**
   * A digest of every step of all seeds, independent of the order in which they ended. A change that changes no
   * behaviour does not change it.
   */
  get trace(): string {
    const hash = createHash('sha256');
    for (const [seed, steps] of [...this.#hashes].sort(([a], [b]) => a - b))
      hash.update(`${seed} ${steps}\n`);
    return hash.digest('hex').slice(0, 16);
  }

  summary(seconds: number): string {
    const rate = (count: number): number => Math.round(count / seconds);
    return [
      `${this.seeds} ${this.seeds === 1 ? 'seed' : 'seeds'}, ${this.steps} steps in ${seconds.toFixed(1)} s of CPU (${rate(this.steps)}/s), ${rate(this.#millis / 1_000)}x real time`,
      `${this.#requests} requests: ${this.#grants} granted, ${this.#denials} denied, ${this.#unlimited} without a rule, ` +
        `${this.#unavailable} unavailable (${this.#atCapacity} for lack of memory), ${this.#conflicts} with an id of another request`,
      `decided: ${percent(this.#decided, this.#requests)} of all requests, more than ${100 * DECISIVE} % in ` +
        `${percent(this.#decisive, this.seeds)} of the worlds; per second of CPU ${rate(this.#decided)}: ` +
        `${rate(this.#grants)} granted, ${rate(this.#denials)} denied`,
      `faults: ${listed(this.#faults)}`,
      `met: ${listed(this.#coverage)}`,
      `trace: ${this.trace}`,
      `violations: ${this.violations}`,
    ].join('\n');
  }

  get #decided(): number {
    return this.#grants + this.#denials + this.#unlimited;
  }

  toJSON(): TotalsJson {
    return {
      seeds: this.seeds,
      steps: this.steps,
      simulatedHours: Number((this.#millis / 3_600_000).toFixed(3)),
      requests: this.#requests,
      grants: this.#grants,
      decided: this.#decided,
      faults: Object.fromEntries(this.#faults),
      coverage: Object.fromEntries(this.#coverage),
      violations: this.violations,
      trace: this.trace,
    };
  }
}

function decidedOf({ grants, denials, unlimited }: RunResult): number {
  return grants + denials + unlimited;
}

function percent(part: number, whole: number): string {
  return `${(whole === 0 ? 0 : (100 * part) / whole).toFixed(0)} %`;
}

function addAll(sums: Map<string, number>, counts: ReadonlyMap<string, number>): void {
  for (const [name, count] of counts) sums.set(name, (sums.get(name) ?? 0) + count);
}

function listed(counts: ReadonlyMap<string, number>): string {
  const byName = new Intl.Collator('en', { numeric: true });
  const sorted = [...counts].sort(([a], [b]) => byName.compare(a, b));
  return sorted.map(([name, count]) => `${name}: ${count}`).join(', ');
}
