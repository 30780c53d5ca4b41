/**
 * Runs all cells in rounds. A round starts each thing, measures it and stops it before the next. Every other round runs
 * in reverse order, so that slow changes of the machine affect all things alike. A thing that cannot run is noted and
 * does not end the bench.
 */
import { measure, type Sample } from './measure.ts';
import type { RunningThing, ThingUnderLoad } from './peers/thing-under-load.ts';
import type { Cell, Timing } from './plan.ts';
import type { Running } from './running.ts';

export interface RoundSample extends Sample {
  readonly cell: string;
  /** Number of the round, from 1. */
  readonly round: number;
}

export interface RoundsResult {
  readonly samples: readonly RoundSample[];
  /** Sentences about cells that were left out or failed, without duplicates. */
  readonly notes: readonly string[];
}

export interface RoundsInit {
  readonly cells: readonly Cell[];
  readonly timing: Timing;
  readonly seed: number;
  readonly running: Running;
  readonly say: (line: string) => void;
}

function describe(sample: Sample): string {
  const { decisionsPerSecond, p50Millis, p99Millis, errors } = sample;
  const latency = `p50 ${p50Millis.toFixed(1)} ms, p99 ${p99Millis.toFixed(1)} ms`;
  const failed = errors > 0 ? `, ${errors} errors` : '';
  return `${Math.round(decisionsPerSecond)} decisions/s, ${latency}${failed}`;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

class Rounds {
  readonly samples: RoundSample[] = [];
  readonly notes = new Set<string>();
  readonly #init: RoundsInit;
  #done = 0;

  constructor(init: RoundsInit) {
    this.#init = init;
  }

  async run(): Promise<void> {
    const { cells, timing } = this.#init;
    const things = [...new Set(cells.map(({ thing }) => thing))];
    for (let round = 1; round <= timing.rounds; round += 1) {
      const order = round % 2 === 1 ? things : things.toReversed();
      for (const thing of order) await this.#turnOf(thing, round);
    }
  }

  async #turnOf(thing: ThingUnderLoad, round: number): Promise<void> {
    const { cells, timing, running } = this.#init;
    const own = cells.filter((cell) => cell.thing === thing);
    const missing = thing.missing?.();
    if (missing !== undefined) {
      this.#note(`${thing.id} is left out: ${missing}`);
      this.#done += own.length;
      return;
    }
    let started: RunningThing;
    try {
      started = await thing.start();
    } catch (error) {
      this.#note(`${thing.id} did not start: ${messageOf(error)}`);
      this.#done += own.length;
      running.endAll();
      return;
    }
    let warmUpMillis = timing.warmUpMillis + timing.firstWarmUpMillis;
    for (const cell of own) {
      const isMeasured = await this.#measure(cell, round, started, warmUpMillis);
      if (isMeasured) ({ warmUpMillis } = timing);
    }
    await started.stop();
  }

  /** Measures one cell. Returns whether it succeeded. */
  async #measure(cell: Cell, round: number, thing: RunningThing, warmUpMillis: number): Promise<boolean> {
    const { cells, timing, seed, running, say } = this.#init;
    const { measuredMillis } = timing;
    this.#done += 1;
    const { workload } = cell;
    const job = cell.setup.job(thing, { workload, seed, warmUpMillis, measuredMillis });
    if (job === undefined) {
      const listener = cell.setup.bare === 'bare-http' ? 'HTTP' : 'the Redis protocol';
      this.#note(`${cell.thing.id} has no ${listener} listener in this version: such cells are left out`);
      return false;
    }
    const place = `[${this.#done}/${cells.length * timing.rounds}] round ${round}, ${cell.id}`;
    try {
      const sample = await measure(job, thing, running);
      this.samples.push({ cell: cell.id, round, ...sample });
      say(`${place}: ${describe(sample)}`);
      return true;
    } catch (error) {
      this.#note(`${cell.id} failed: ${messageOf(error)}`);
      return false;
    }
  }

  #note(note: string): void {
    if (!this.notes.has(note)) this.#init.say(note);
    this.notes.add(note);
  }
}

export async function runRounds(init: RoundsInit): Promise<RoundsResult> {
  const rounds = new Rounds(init);
  await rounds.run();
  return { samples: rounds.samples, notes: [...rounds.notes] };
}
