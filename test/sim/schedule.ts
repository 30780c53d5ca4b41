/** Virtual time: a queue of future events. Events at equal times run in the order they were scheduled. */

interface Event {
  readonly at: number;
  readonly sequence: number;
  readonly run: () => void;
}

export class Schedule {
  /** Real time of the simulated world in milliseconds, with fractions. */
  now: number;
  /** A binary heap: the children of `i` are `2 i + 1` and `2 i + 2`. */
  readonly #heap: Event[] = [];
  #sequence = 0;

  constructor(startMillis: number) {
    this.now = startMillis;
  }

  after(delayMillis: number, run: () => void): void {
    const event = { at: this.now + Math.max(0, delayMillis), sequence: this.#sequence, run };
    this.#sequence += 1;
    const heap = this.#heap;
    let i = heap.length;
    heap.push(event);
    while (i > 0) {
      const parent = (i - 1) >> 1;
      const above = heap[parent];
      if (above === undefined || isBefore(above, event)) break;
      heap[i] = above;
      i = parent;
    }
    heap[i] = event;
  }

  /** Moves time to the next event and returns it; undefined when no event is left. */
  take(): (() => void) | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (first === undefined || last === undefined) return undefined;
    if (heap.length > 0) this.#sink(last);
    this.now = first.at;
    return first.run;
  }

  #sink(event: Event): void {
    const heap = this.#heap;
    let i = 0;
    for (;;) {
      let child = 2 * i + 1;
      let below = heap[child];
      if (below === undefined) break;
      const right = heap[child + 1];
      if (right !== undefined && isBefore(right, below)) {
        child += 1;
        below = right;
      }
      if (isBefore(event, below)) break;
      heap[i] = below;
      i = child;
    }
    heap[i] = event;
  }
}

function isBefore(a: Event, b: Event): boolean {
  return a.at < b.at || (a.at === b.at && a.sequence < b.sequence);
}
