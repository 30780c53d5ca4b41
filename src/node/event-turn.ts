/**
 * One turn of the event loop, as a node uses it: what its sockets and its disk brought is decided together, and what comes of it
 * leaves together. Each write to a socket wakes another process, which costs more than what is written.
 */

/**
 * - `decide`: whatever came since the last turn;
 * - `gather`: what was decided, for whom it concerns;
 * - `send`: frames to peers, one write for each, since others wait for those;
 * - `reply`: answers to clients.
 */
const STAGES = ['decide', 'gather', 'send', 'reply'] as const;
export type TurnStage = (typeof STAGES)[number];
type Task = () => void;

/** Nothing may throw out of a task: whoever gives one deals with what can go wrong in it. */
export class EventTurn {
  readonly #tasks: Record<TurnStage, Task[]> = { decide: [], gather: [], send: [], reply: [] };
  readonly #began: () => void;
  #isPlanned = false;

  /** @param began told of each turn before its first task */
  constructor(began: () => void = () => {}) {
    this.#began = began;
  }

  /** Runs `task` once, when everything that can be read now was read. While that stage runs, or a later one: in the next turn. */
  at(stage: TurnStage, task: Task): void {
    this.#tasks[stage].push(task);
    if (this.#isPlanned) return;
    this.#isPlanned = true;
    setImmediate(() => this.#run());
  }

  #run(): void {
    this.#began();
    for (const stage of STAGES) {
      const tasks = this.#tasks[stage];
      if (tasks.length === 0) continue;
      this.#tasks[stage] = [];
      for (const task of tasks) task();
    }
    this.#isPlanned = STAGES.some((stage) => this.#tasks[stage].length > 0);
    if (this.#isPlanned) setImmediate(() => this.#run());
  }
}
