/**
 * The commands between `MULTI` and `EXEC`: kept until `EXEC`, then run one after the other, each decided by itself. It runs
 * nothing, and what it keeps has a bound.
 */
import type { CommandArguments, KeptArguments } from './command-arguments.ts';

/** As many as there may be without an answer on a connection. */
const COMMANDS_MAX = 1_024;
const BYTES_MAX = 262_144;
/** What is kept of a command beside its bytes. */
const OVERHEAD_BYTES = 256;

export const TRANSACTION_BOUND = `${COMMANDS_MAX} commands and ${BYTES_MAX} bytes`;

export class Transaction {
  /** On the monotonic clock. */
  readonly openedMillis: number;
  #queued: KeptArguments[] = [];
  /** The next one to run; undefined before `EXEC`. */
  #next: number | undefined;
  /** How many bytes the arguments of those take. */
  #bytes = 0;
  #isRefused = false;

  constructor(openedMillis: number) {
    this.openedMillis = openedMillis;
  }

  /** Commands are kept, and do not run. */
  get isOpen(): boolean {
    return this.#next === undefined;
  }

  /** One of its commands was refused: none will run. */
  get isRefused(): boolean {
    return this.#isRefused;
  }

  get heldBytes(): number {
    return this.#bytes + OVERHEAD_BYTES * this.#queued.length;
  }

  refuse(): void {
    this.#isRefused = true;
    this.#queued = [];
    this.#bytes = 0;
  }

  /** False: there is no room for this command, and none of the others will run either. */
  maybeKeep(args: CommandArguments): boolean {
    if (this.#isRefused) return true;
    const kept = args.copy();
    this.#bytes += kept.bytes.length;
    if (this.#bytes > BYTES_MAX || this.#queued.length === COMMANDS_MAX) {
      this.refuse();
      return false;
    }
    this.#queued.push(kept);
    return true;
  }

  /** They run from now on. @returns how many there are */
  start(): number {
    this.#next = 0;
    return this.#queued.length;
  }

  /** Makes `args` those of the next command to run; false: all have run. */
  take(args: CommandArguments): boolean {
    const kept = this.#queued[this.#next ?? 0];
    if (kept === undefined) return false;
    this.#next = (this.#next ?? 0) + 1;
    args.load(kept);
    return true;
  }
}
