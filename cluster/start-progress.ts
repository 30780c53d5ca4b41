/** Whether nodes that are starting get on. As long as something moves there is hope, however long it takes. */

/** Who starts in that time needs no words. */
const SILENT_MILLIS = 3_000;
const SAY_EVERY_MILLIS = 2_000;

export class StartProgress {
  readonly #patienceMillis: number;
  readonly #say: (line: string) => void;
  readonly #startedMillis: number;
  readonly #said = new Map<number, { readonly state: string; readonly atMillis: number }>();
  /** Where each node has been: to come back there is no progress, or a leader lost again and again would be. */
  readonly #reached = new Set<string>();
  #states: ReadonlyMap<number, string> = new Map();
  #movedMillis: number;

  /** @param patienceMillis without any progress */
  constructor(patienceMillis: number, say: (line: string) => void, nowMillis: number) {
    this.#patienceMillis = patienceMillis;
    this.#say = say;
    this.#startedMillis = nowMillis;
    this.#movedMillis = nowMillis;
  }

  /** What each node says of itself now. False: nothing has moved for too long. */
  look(states: ReadonlyMap<number, string>, nowMillis: number): boolean {
    const before = this.#reached.size;
    for (const [id, state] of states) this.#reached.add(`${id} ${state}`);
    if (this.#reached.size > before) this.#movedMillis = nowMillis;
    this.#states = states;
    if (nowMillis - this.#startedMillis >= SILENT_MILLIS) this.#tell(nowMillis);
    return nowMillis - this.#movedMillis <= this.#patienceMillis;
  }

  #tell(nowMillis: number): void {
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
