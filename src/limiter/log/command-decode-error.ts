/** The error for bytes that are not a command of the log. */

/** The bytes are not a valid command. In a committed entry this means damage: the replica must stop. */
export class CommandDecodeError extends Error {
  override readonly name = 'CommandDecodeError';
  readonly code = 'COMMAND_DECODE';

  constructor(problem: string) {
    super(`not a limiter command: ${problem}`);
  }
}
