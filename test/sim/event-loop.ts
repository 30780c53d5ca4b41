/**
 * The event loop of a simulated world. It runs one event at a time, with everything that follows from it at the same
 * moment.
 */
import { Schedule } from './schedule.ts';
import { Violation } from './story.ts';

/** No chain of promises in a node is longer. */
const REACTIONS_MAX = 64;
const SETTLED = Promise.resolve();

export class EventLoop {
  readonly #schedule: Schedule;
  readonly #soon: (() => void)[] = [];
  #settling = false;
  #violation: Violation | undefined;
  #isOver = false;

  constructor(startMillis: number) {
    this.#schedule = new Schedule(startMillis);
  }

  get now(): number {
    return this.#schedule.now;
  }

  after(delayMillis: number, run: () => void): void {
    this.#schedule.after(delayMillis, run);
  }

  /** Runs at the end of the current step. */
  soon(run: () => void): void {
    this.#soon.push(run);
  }

  /** A promise is being settled: the step ends when everything that follows from it has happened. */
  settling(): void {
    this.#settling = true;
  }

  /** Ends the run after this step. */
  violated(violation: Violation): void {
    this.#violation ??= violation;
  }

  end(): void {
    this.#isOver = true;
  }

  /** Runs until `end`. Throws a Violation. Never waits for real time. */
  async run(): Promise<void> {
    while (!this.#isOver) {
      const event = this.#schedule.take();
      if (event === undefined) throw new Violation('nothing will ever happen again');
      event();
      this.#drain();
      while (this.#settling) {
        this.#settling = false;
        for (let i = 0; i < REACTIONS_MAX; i += 1) await SETTLED;
        this.#drain();
      }
      if (this.#violation !== undefined) throw this.#violation;
    }
  }

  #drain(): void {
    for (let next = this.#soon.shift(); next !== undefined; next = this.#soon.shift()) next();
  }
}
