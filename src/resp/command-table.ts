/**
 * Finds a command by its name, and refuses unknown ones. The error texts are those of Redis, because clients parse
 * some of them.
 */
import type { Call, Command } from './command.ts';
import type { CommandArguments } from './command-arguments.ts';
import { type ErrorReply, failed, type Reply } from './reply.ts';

/** The most bytes that an error shows of an unknown command, and of all its arguments together. */
const SHOWN_BYTES_MAX = 128;
const NONE: readonly Command[] = [];

/** A table of commands by name. */
export class CommandTable {
  readonly all: readonly Command[];
  /** Indexed by the length of the name. Few names have the same length, so usually one comparison is enough. */
  readonly #byLength: (readonly Command[])[] = [];

  constructor(commands: readonly Command[]) {
    this.all = commands;
    for (const command of commands) {
      const same = this.#byLength[command.name.length] ?? [];
      this.#byLength[command.name.length] = [...same, command];
    }
  }

  /** The command named by argument `index`. Undefined if there is none. */
  get(args: CommandArguments, index: number): Command | undefined {
    if (index >= args.count) return undefined;
    for (const command of this.#byLength[args.lengthOf(index)] ?? NONE) {
      if (args.is(index, command.name)) return command;
    }
    return undefined;
  }
}

/** True if a command takes `count` arguments, its name included. */
export function fitsArity({ arity }: Command, count: number): boolean {
  return arity < 0 ? count >= -arity : count === arity;
}

/** The refusal of an unknown command. */
export function unknownCommand(args: CommandArguments): ErrorReply {
  let shown = '';
  for (let i = 1; i < args.count && shown.length < SHOWN_BYTES_MAX; i += 1) {
    shown += `'${args.shown(i, SHOWN_BYTES_MAX - shown.length)}' `;
  }
  return failed(`unknown command '${args.shown(0, SHOWN_BYTES_MAX)}', with args beginning with: ${shown}`);
}

/** The refusal of a wrong number of arguments. @param name the full name, such as `client|setname` */
export function wrongArity(name: string): ErrorReply {
  return failed(`wrong number of arguments for '${name.toLowerCase()}' command`);
}

/**
 * A command that consists of subcommands.
 *
 * @param command its `arity` must require at least one subcommand, unless `bare` is given
 * @param bare runs the command without a subcommand
 */
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
