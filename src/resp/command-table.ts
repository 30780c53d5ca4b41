/** Finds a command by its name, and refuses what is none: the texts are those of Redis, as clients look for some of them. */
import type { Call, Command } from './command.ts';
import type { CommandArguments } from './command-arguments.ts';
import { type ErrorReply, failed, type Reply } from './reply.ts';

/** How much of an unknown command is told back, and of its arguments together. */
const SHOWN_BYTES_MAX = 128;
const NONE: readonly Command[] = [];

export class CommandTable {
  readonly all: readonly Command[];
  /** By the length of the name: few names have the same, so that hardly more than one is compared. */
  readonly #byLength: (readonly Command[])[] = [];

  constructor(commands: readonly Command[]) {
    this.all = commands;
    for (const command of commands) {
      const same = this.#byLength[command.name.length] ?? [];
      this.#byLength[command.name.length] = [...same, command];
    }
  }

  get(args: CommandArguments, index: number): Command | undefined {
    if (index >= args.count) return undefined;
    for (const command of this.#byLength[args.lengthOf(index)] ?? NONE) {
      if (args.is(index, command.name)) return command;
    }
    return undefined;
  }
}

export function fitsArity({ arity }: Command, count: number): boolean {
  return arity < 0 ? count >= -arity : count === arity;
}

export function unknownCommand(args: CommandArguments): ErrorReply {
  let shown = '';
  for (let i = 1; i < args.count && shown.length < SHOWN_BYTES_MAX; i += 1) {
    shown += `'${args.shown(i, SHOWN_BYTES_MAX - shown.length)}' `;
  }
  return failed(`unknown command '${args.shown(0, SHOWN_BYTES_MAX)}', with args beginning with: ${shown}`);
}

/** @param name with its container, as `client|setname` */
export function wrongArity(name: string): ErrorReply {
  return failed(`wrong number of arguments for '${name.toLowerCase()}' command`);
}

/** A command that is nothing without a second name. @param arity of its own, with at least one name */
export function container(
  command: Pick<Command, 'name' | 'arity' | 'flags' | 'summary'>,
  subcommands: readonly Command[],
  bare?: (call: Call) => Reply,
): Command {
  const table = new CommandTable(subcommands);
  return {
    ...command,
    key: 0,
    subcommands: table,
    run(call) {
      const { args } = call;
      if (args.count === 1 && bare !== undefined) return bare(call);
      const subcommand = table.get(args, 1);
      if (subcommand === undefined) {
        const shown = args.shown(1, SHOWN_BYTES_MAX);
        return failed(`unknown subcommand '${shown}'. Try COMMAND DOCS ${command.name}.`);
      }
      if (!fitsArity(subcommand, args.count)) return wrongArity(`${command.name}|${subcommand.name}`);
      return subcommand.run(call);
    },
  };
}
