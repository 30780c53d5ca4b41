/** All commands of a program, and a program that understands its command lines and does nothing. */
import type { Command } from 'commander';
import { quorateProgram } from '../../src/cli/program.ts';

export interface Walked {
  /** As it is typed: `quorate nodes add`. */
  readonly path: string;
  readonly command: Command;
}

/** The program, its commands, and theirs. */
export function walked(command: Command = quorateProgram('0.0.0'), before = ''): Walked[] {
  const path = `${before} ${command.name()}`.trim();
  return [{ path, command }, ...command.commands.flatMap((each) => walked(each, path))];
}

/**
 * Why `quorate` does not take these words; undefined: it does.
 *
 * @param isFragment what is required may be missing: what is there must make sense
 */
export async function misunderstood(
  args: readonly string[],
  isFragment = false,
): Promise<string | undefined> {
  const program = quorateProgram('0.0.0');
  const complaints: string[] = [];
  for (const { command } of walked(program)) {
    command.configureOutput({ writeErr: (text) => complaints.push(text), writeOut: () => undefined });
    // A group of commands may do something by itself, as `quorate container` does.
    if (command.commands.length === 0 || Reflect.get(command, '_actionHandler') != null)
      command.action(() => undefined);
    if (!isFragment) continue;
    for (const option of command.options) option.mandatory = false;
    for (const argument of command.registeredArguments) argument.required = false;
  }
  try {
    await program.parseAsync(args, { from: 'user' });
    return undefined;
  } catch (error) {
    const { code = '' } = error as { code?: string };
    const isMissing = ['commander.optionMissingArgument', 'commander.help'].includes(code);
    return ['commander.helpDisplayed', 'commander.version'].includes(code) || (isFragment && isMissing)
      ? undefined
      : complaints.join('').trim() || String(error);
  }
}
