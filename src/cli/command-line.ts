/** How our commands read their arguments and end: a sentence and an exit code, also for arguments that make no sense. */
import { readFileSync } from 'node:fs';
import { Command } from 'commander';
import { explain } from './explain-error.ts';

/** A command whose refusals look like all others. */
export function newCommand(name: string): Command {
  return new Command(name).exitOverride().configureOutput({
    outputError: (text, write) => write(text.replace(/^error: /, 'quorate: ')),
  });
}

/** Runs it; ends the process if it fails. */
export async function runCommand(command: Command): Promise<void> {
  const failure = await failureOf(command, process.argv.slice(2));
  if (failure !== undefined) process.exit(failure);
}

/** Runs it, and says why it failed, if it did. Resolves with the code to end with then. */
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

/** The last thing a process says: `npm start` looks for this line in the log of a node that ended. */
export function complain(message: string): void {
  console.error(`quorate: ${message}`);
}

/** Of the package that the compiled command belongs to. */
export function packageVersion(): string {
  const text = readFileSync(new URL('../../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}
