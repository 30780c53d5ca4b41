/** `COMMAND`: the table of commands, from which clients learn which argument of a command is the key. */
import type { Call, Command } from '../command.ts';
import { container, fitsArity } from '../command-table.ts';
import { failed, mapOf, type Reply, setOf, simple } from '../reply.ts';

const FLAGS = ['loading', 'stale'];
const GROUP = 'server';
/** In `COMMAND GETKEYS`, the index of the command's name; its own arguments follow. */
const COMMAND_ARGUMENT = 2;

/** The command `COMMAND`. */
export const COMMAND = container(
  { name: 'COMMAND', arity: -1, flags: FLAGS, summary: 'Describes all commands' },
  [
    subcommand('COUNT', 2, 'How many commands there are', ({ listener }) => listener.commands.all.length),
    subcommand('LIST', 2, 'The names of all commands', ({ listener }) =>
      listener.commands.all.map(({ name }) => name.toLowerCase()),
    ),
    subcommand('INFO', -2, 'Describes some commands', ({ args, listener }) =>
      args.count === 2
        ? describedAll(listener.commands.all)
        : named(args.count, (i) => listener.commands.get(args, i)),
    ),
    subcommand('DOCS', -2, 'Says what commands are for', docs),
    subcommand('GETKEYS', -3, 'Which arguments of a command are keys', keysOf),
  ],
  ({ listener }) => describedAll(listener.commands.all),
);

function subcommand(name: string, arity: number, summary: string, run: (call: Call) => Reply): Command {
  return { name, arity, flags: FLAGS, key: 0, summary, run };
}

function named(count: number, get: (index: number) => Command | undefined): Reply {
  const found: Reply[] = [];
  for (let i = 2; i < count; i += 1) {
    const command = get(i);
    found.push(command === undefined ? null : description(command));
  }
  return found;
}

/**
 * Computed only once for each command, because a request of a few bytes can ask for all of them, or many times for
 * the same one.
 */
const description = once((command: Command) => describe(command));
const documentation = once((command: Command) => document(command));
const describedAll = once((commands: readonly Command[]) => commands.map(description));
const documentedAll = once((commands: readonly Command[]) => commands.map(documentation));

function once<K extends object, T>(make: (key: K) => T): (key: K) => T {
  const made = new WeakMap<K, T>();
  return (key) => {
    const known = made.get(key) ?? make(key);
    made.set(key, known);
    return known;
  };
}

/**
 * The ten elements that Redis 7 returns for a command: name, arity, flags, first key, last key, step, access
 * categories, tips, key specifications, subcommands.
 */
function describe({ name, arity, flags, key, subcommands }: Command, container = ''): Reply {
  const path = `${container}${name.toLowerCase()}`;
  const inner = subcommands?.all.map((each) => describe(each, `${path}|`)) ?? [];
  const step = key === 0 ? 0 : 1;
  return [path, arity, setOf(flags.map((flag) => simple(flag))), key, key, step, setOf([]), [], [], inner];
}

function docs({ args, listener }: Call): Reply {
  if (args.count === 2) return { kind: 'map', entries: documentedAll(listener.commands.all) };
  const entries: Documented[] = [];
  for (let i = 2; i < args.count; i += 1) {
    const command = listener.commands.get(args, i);
    if (command !== undefined) entries.push(documentation(command));
  }
  return { kind: 'map', entries };
}

type Documented = readonly [path: string, about: Reply];

function document({ name, summary, subcommands }: Command, container = ''): Documented {
  const path = `${container}${name.toLowerCase()}`;
  const entries = subcommands?.all.map((each) => document(each, `${path}|`));
  const inner = entries === undefined ? {} : { subcommands: { kind: 'map', entries } as const };
  return [path, mapOf({ summary: `${summary}.`, since: '1.0.0', group: GROUP, ...inner })];
}

function keysOf({ args, listener }: Call): Reply {
  const command = listener.commands.get(args, COMMAND_ARGUMENT);
  if (command === undefined) return failed('Invalid command specified');
  if (command.key === 0) return failed('The command has no key arguments');
  const key = COMMAND_ARGUMENT + command.key;
  if (!fitsArity(command, args.count - COMMAND_ARGUMENT) || args.count <= key) {
    return failed('Invalid number of arguments specified for command');
  }
  return [args.bytes(key)];
}
