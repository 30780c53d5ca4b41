/**
 * How commands read their arguments, explain themselves with `--help`, and report errors: one line on standard error and
 * an exit code, also for wrong arguments.
 */
import { readFileSync } from 'node:fs';
import { Command } from 'commander';
import { explain } from './explain-error.ts';

/** Creates a command that reports wrong arguments like any other error. */
export function newCommand(name: string): Command {
  return new Command(name).exitOverride().configureOutput({
    outputError: (text, write) => write(text.replace(/^error: /, 'quorate: ')),
  });
}

/** Runs a command, and ends the process if it fails. */
export async function runCommand(command: Command): Promise<void> {
  const failure = await failureOf(command, process.argv.slice(2));
  if (failure !== undefined) process.exit(failure);
}

/** Runs a command and prints its error, if there is one. Resolves with the exit code of the error, or undefined. */
export async function failureOf(command: Command, args: readonly string[]): Promise<number | undefined> {
  try {
    await command.parseAsync(args, { from: 'user' });
    return undefined;
  } catch (error) {
    const { message, exitCode } = explain(error);
    if (message !== '') complain(message);
    return exitCode;
  }
}

/** Prints an error as the last line of the process. `npm start` reads this line in the log of a node that ended. */
export function complain(message: string): void {
  console.error(`quorate: ${message}`);
}

/** The version of the package that this code belongs to. */
export function packageVersion(): string {
  const text = readFileSync(new URL('../../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}

/** The help of a command. */
interface Explained {
  /** The purpose of the command, in one sentence. */
  readonly does: string;
  /** Exit codes with a meaning of their own for this command. The usual ones are added. */
  readonly exits?: Readonly<Record<number, string>>;
  /** Complete command lines. */
  readonly examples: readonly [string, ...string[]];
}

/**
 * Adds the `--help` text to a command, in the form of all commands: a sentence, the exit codes that differ from the
 * usual ones, and examples. Returns the command.
 */
export function explained(command: Command, { does, exits = {}, examples }: Explained): Command {
  const codes = Object.entries(exits).map(([code, when]) => `  ${code.padStart(2)}  ${when}`);
  const sections = [
    ...(codes.length === 0 ? [] : ['Exit codes:', ...codes, '']),
    examples.length === 1 ? 'Example:' : 'Examples:',
    ...examples.map((line) => `  ${line}`),
  ];
  return command.description(does).addHelpText('after', `\n${sections.join('\n')}`);
}
