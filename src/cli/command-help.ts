/** What `--help` says of a command beside its options, in the same shape for all: a sentence, exit codes of its own, and examples. */
import type { Command } from 'commander';

export interface Explained {
  /** One sentence. */
  readonly does: string;
  /** What ends it with which code, where that is its own: the others are those of every command. */
  readonly exits?: Readonly<Record<number, string>>;
  /** Command lines that may be typed as they are. */
  readonly examples: readonly [string, ...string[]];
}

export function explained(command: Command, { does, exits = {}, examples }: Explained): Command {
  const codes = Object.entries(exits).map(([code, when]) => `  ${code.padStart(2)}  ${when}`);
  const sections = [
    ...(codes.length === 0 ? [] : ['Exit codes:', ...codes, '']),
    examples.length === 1 ? 'Example:' : 'Examples:',
    ...examples.map((line) => `  ${line}`),
  ];
  return command.description(does).addHelpText('after', `\n${sections.join('\n')}`);
}
