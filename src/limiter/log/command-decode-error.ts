/** What bytes are refused with that should be a command of the log. */

/** Bytes are not a command. Met in a committed entry, this means damage: the replica must stop. */
export class CommandDecodeError extends Error {
  override readonly name = 'CommandDecodeError';
  readonly code = 'COMMAND_DECODE';

  constructor(problem: string) {
    super(`not a limiter command: ${problem}`);
  }
}
