/** Lists all commands of the program, and checks command lines without running them. */
import type { Command } from 'commander';
import { quorateProgram } from '../../src/cli/program.ts';

export interface Walked {
  /** Full name, such as `quorate nodes add`. */
  readonly path: string;
  readonly command: Command;
}

/** Lists the program and all its commands, at every level. */
export function walked(command: Command = quorateProgram('0.0.0'), before = ''): Walked[] {
  const path = `${before} ${command.name()}`.trim();
  return [{ path, command }, ...command.commands.flatMap((each) => walked(each, path))];
}

/**
 * Returns why `quorate` refuses these words; undefined if it accepts them.
 *
 * @param isFragment required arguments may be missing, but the given ones must be valid
 */
export async function misunderstood(
  args: readonly string[],
  isFragment = false,
): Promise<string | undefined> {
  const program = quorateProgram('0.0.0');
  const complaints: string[] = [];
  for (const { command } of walked(program)) {
    command.configureOutput({ writeErr: (text) => complaints.push(text), writeOut: () => undefined });
    // A group of commands may also be a command itself, such as `quorate container`.
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
