/**
 * The `--help` texts of all commands, in one form: a sentence, the exit codes that differ from the usual ones, and
 * examples.
 */
import type { Command } from 'commander';

/** The help of a command. */
export interface Explained {
  /** What the command does, in one sentence. */
  readonly does: string;
  /** Exit codes with a meaning of their own for this command. The usual ones are added. */
  readonly exits?: Readonly<Record<number, string>>;
  /** Complete command lines. */
  readonly examples: readonly [string, ...string[]];
}

/** Adds the help to a command, and returns the command. */
export function explained(command: Command, { does, exits = {}, examples }: Explained): Command {
  const codes = Object.entries(exits).map(([code, when]) => `  ${code.padStart(2)}  ${when}`);
  const sections = [
    ...(codes.length === 0 ? [] : ['Exit codes:', ...codes, '']),
    examples.length === 1 ? 'Example:' : 'Examples:',
    ...examples.map((line) => `  ${line}`),
  ];
  return command.description(does).addHelpText('after', `\n${sections.join('\n')}`);
}
