/**
 * The commands between `MULTI` and `EXEC`. They are kept until `EXEC`, and then run one after the other; each is
 * decided on its own. Its memory is bounded.
 */
import type { CommandArguments, KeptArguments } from './command-arguments.ts';

/** The most commands, as many as a connection may have open. */
const COMMANDS_MAX = 1_024;
const BYTES_MAX = 262_144;
/** The memory for one command, besides its bytes. */
const OVERHEAD_BYTES = 256;

/** The bounds, for error messages. */
export const TRANSACTION_BOUND = `${COMMANDS_MAX} commands and ${BYTES_MAX} bytes`;

/** One transaction. */
export class Transaction {
  /** When it was opened, on the monotonic clock. */
  readonly openedMillis: number;
  #queued: KeptArguments[] = [];
  /** The index of the next command to run; undefined before `EXEC`. */
  #next: number | undefined;
  /** The bytes of the kept arguments. */
  #bytes = 0;
  #isRefused = false;

  constructor(openedMillis: number) {
    this.openedMillis = openedMillis;
  }

  /** True before `EXEC`: commands are kept and do not run. */
  get isOpen(): boolean {
    return this.#next === undefined;
  }

  /** True if one of its commands was refused; then none runs. */
  get isRefused(): boolean {
    return this.#isRefused;
  }

  /** The memory that it uses, in bytes. */
  get heldBytes(): number {
    return this.#bytes + OVERHEAD_BYTES * this.#queued.length;
  }

  /** Refuses the transaction and forgets its commands. */
  refuse(): void {
    this.#isRefused = true;
    this.#queued = [];
    this.#bytes = 0;
  }

  /** Keeps a command. False if there is no room; then the transaction is refused. */
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

  /** `EXEC`: starts running the commands. @returns their number */
  start(): number {
    this.#next = 0;
    return this.#queued.length;
  }

  /** Sets `args` to the next command to run. False if all have run. */
  take(args: CommandArguments): boolean {
    const kept = this.#queued[this.#next ?? 0];
    if (kept === undefined) return false;
    this.#next = (this.#next ?? 0) + 1;
    args.load(kept);
    return true;
  }
}
