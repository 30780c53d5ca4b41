/** Simulates time, and machines whose processes share the cores. */
import TinyQueue from 'tinyqueue';

interface Event {
  readonly atMicros: number;
  /** Breaks ties: events at the same time run in the order in which they were made. */
  readonly order: number;
  readonly happen: () => void;
}

export class Timeline {
  nowMicros = 0;
  #made = 0;
  readonly #events = new TinyQueue<Event>([], (a, b) => a.atMicros - b.atMicros || a.order - b.order);

  after(micros: number, happen: () => void): void {
    this.#made += 1;
    this.#events.push({ atMicros: this.nowMicros + micros, order: this.#made, happen });
  }

  runUntil(micros: number): void {
    for (let next = this.#events.peek(); next !== undefined && next.atMicros <= micros;) {
      this.#events.pop();
      this.nowMicros = next.atMicros;
      next.happen();
      next = this.#events.peek();
    }
    this.nowMicros = micros;
  }
}

/** A machine without preemption: started work runs to its end, and waiting work runs in order of arrival. */
export class Machine {
  busyMicros = 0;
  #idleCores: number;
  readonly #timeline: Timeline;
  readonly #waiting: { readonly micros: number; readonly done: () => void }[] = [];
  #next = 0;

  constructor(timeline: Timeline, cores: number) {
    this.#timeline = timeline;
    this.#idleCores = cores;
  }

  run(micros: number, done: () => void): void {
    if (this.#idleCores === 0) {
      this.#waiting.push({ micros, done });
      return;
    }
    this.#idleCores -= 1;
    this.#begin(micros, done);
  }

  #begin(micros: number, done: () => void): void {
    this.busyMicros += micros;
    this.#timeline.after(micros, () => {
      const next = this.#waiting[this.#next];
      if (next === undefined) this.#idleCores += 1;
      else {
        this.#next += 1;
        if (this.#next === this.#waiting.length) {
          this.#waiting.length = 0;
          this.#next = 0;
        }
        this.#begin(next.micros, next.done);
      }
      done();
    });
  }
}
