/** Decides whether starting nodes still make progress. As long as one does, the start may take any time. */

/** Print nothing about a start that takes less than this. */
const SILENT_MILLIS = 3_000;
const SAY_EVERY_MILLIS = 2_000;

/** Follows the states of the starting nodes. */
export class StartProgress {
  readonly #patienceMillis: number;
  readonly #say: (line: string) => void;
  readonly #startedMillis: number;
  readonly #said = new Map<number, { readonly state: string; readonly atMillis: number }>();
  /**
   * All states that each node has been in. Going back to an earlier state is no progress; otherwise losing a leader
   * again and again would count.
   */
  readonly #reached = new Set<string>();
  #states: ReadonlyMap<number, string> = new Map();
  #movedMillis: number;

  /** @param patienceMillis longest time without progress */
  constructor(patienceMillis: number, say: (line: string) => void, nowMillis: number) {
    this.#patienceMillis = patienceMillis;
    this.#say = say;
    this.#startedMillis = nowMillis;
    this.#movedMillis = nowMillis;
  }

  /** Records the state of each node. Returns false if there was no progress for too long. */
  record(states: ReadonlyMap<number, string>, nowMillis: number): boolean {
    const before = this.#reached.size;
    for (const [id, state] of states) this.#reached.add(`${id} ${state}`);
    if (this.#reached.size > before) this.#movedMillis = nowMillis;
    this.#states = states;
    if (nowMillis - this.#startedMillis >= SILENT_MILLIS) this.#report(nowMillis);
    return nowMillis - this.#movedMillis <= this.#patienceMillis;
  }

  /** The start has ended. Each node of which a line was printed gets a last one, unless it has its state already. */
  end(states: ReadonlyMap<number, string>): void {
    for (const [id, { state }] of this.#said) {
      const last = states.get(id);
      if (last !== undefined && last !== state) this.#say(`node ${id}: ${last}`);
    }
  }

  #report(nowMillis: number): void {
    for (const [id, state] of this.#states) {
      const last = this.#said.get(id);
      if (last?.state === state || nowMillis - (last?.atMillis ?? -Infinity) < SAY_EVERY_MILLIS) continue;
      this.#said.set(id, { state, atMillis: nowMillis });
      this.#say(`node ${id}: ${state}`);
    }
  }

  describe(): string {
    return [...this.#states].map(([id, state]) => `node ${id}: ${state}`).join('; ');
  }
}
