/**
 * Batches the work of one turn (one pass of the event loop): everything that sockets and disk delivered is decided
 * together, and the results leave together. Each write to a socket wakes another process, which costs more than the
 * data itself.
 */

/**
 * The stages of a turn, in order:
 *
 * - `decide`: everything that has arrived since the last turn
 * - `gather`: collect what was decided, by recipient
 * - `send`: frames to peers, one write each; first, as other nodes wait for them
 * - `reply`: answers to clients
 */
const STAGES = ['decide', 'gather', 'send', 'reply'] as const;
/** One stage of a turn. */
export type TurnStage = (typeof STAGES)[number];
type Task = () => void;

/** The turns of one process. Tasks must not throw. */
export class EventTurn {
  readonly #tasks: Record<TurnStage, Task[]> = { decide: [], gather: [], send: [], reply: [] };
  readonly #began: () => void;
  #isPlanned = false;

  /** @param began called at the beginning of each turn */
  constructor(began: () => void = () => {}) {
    this.#began = began;
  }

  /**
   * Runs `task` once, in this stage of the turn after the current poll. If that stage is running or over, in the
   * next turn.
   */
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
