/**
 * `quorate completion`: prints a shell script that completes commands and options. It is generated from the commands
 * themselves.
 */
import { Argument, type Command } from 'commander';
import { explained } from './command-line.ts';

const SHELLS = ['bash', 'zsh', 'fish'] as const;
type Shell = (typeof SHELLS)[number];

/** A command, and the words that can follow it. */
interface Entry {
  /** The words that lead to the command, each with a space before it. Empty for the program itself. */
  readonly path: string;
  readonly words: readonly { readonly word: string; readonly description: string }[];
}

/** Adds `completion` to the program. */
export function addCompletionCommand(program: Command, print: (line: string) => void): void {
  explained(program.command('completion'), {
    does: 'print a shell script that completes commands and options',
    examples: ['source <(quorate completion bash)', 'quorate completion fish | source'],
  })
    .addArgument(new Argument('<shell>', 'which shell').choices(SHELLS))
    .action((shell: Shell) => print(SCRIPTS[shell](entriesOf(program))));
}

/** @param shared options of the program, which every command accepts */
function entriesOf(command: Command, path = '', shared = command.options): readonly Entry[] {
  const commands = command.commands.map((each) => ({ word: each.name(), description: each.description() }));
  const choices = command.registeredArguments.flatMap(({ argChoices = [], description }) =>
    argChoices.map((word) => ({ word, description })),
  );
  const options = [...new Set([...command.options, ...shared])].flatMap(({ long, description }) =>
    long === null || long === undefined ? [] : [{ word: long, description }],
  );
  const help = { word: '--help', description: 'show help' };
  const own = { path, words: [...commands, ...choices, ...options, help] };
  return [own, ...command.commands.flatMap((each) => entriesOf(each, `${path} ${each.name()}`, shared))];
}

function wordsOf({ words }: Entry): string {
  return words.map(({ word }) => word).join(' ');
}

/** Follow the words while they are commands; the rest are options and values. */
function branches(entries: readonly Entry[]): string {
  return entries
    .filter(({ path }) => path !== '')
    .map(({ path }) => `'${path}'`)
    .join('|');
}

const SCRIPTS: Readonly<Record<Shell, (entries: readonly Entry[]) => string>> = {
  bash: (entries) => `_quorate() {
  local word path='' words=''
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$path $word" in
      ${branches(entries)}) path="$path $word" ;;
    esac
  done
  case "$path" in
${entries.map((entry) => `    '${entry.path}') words='${wordsOf(entry)}' ;;`).join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _quorate quorate`,

  zsh: (entries) => `#compdef quorate
_quorate() {
  local word path_='' i
  for ((i = 2; i < CURRENT; i++)); do
    word=$words[i]
    case "$path_ $word" in
      ${branches(entries)}) path_="$path_ $word" ;;
    esac
  done
  case "$path_" in
${entries.map((entry) => `    '${entry.path}') compadd -- ${wordsOf(entry)} ;;`).join('\n')}
  esac
  [[ $compstate[nmatches] -eq 0 ]] && _files
}
compdef _quorate quorate`,

  fish: (entries) => `function __quorate_at
  set -l path ''
  for word in (commandline -opc)[2..-1]
    switch "$path $word"
      case ${branches(entries).replaceAll('|', ' ')}
        set path "$path $word"
    end
  end
  test "$path" = "$argv[1]"
end
${entries
  .flatMap(({ path, words }) =>
    words.map(({ word, description }) => {
      const what = word.startsWith('--') ? `-l ${word.slice(2)}` : `-f -a ${word}`;
      return `complete -c quorate -n "__quorate_at '${path}'" ${what} -d '${description.replaceAll(/['\\]/g, '\\$&')}'`;
    }),
  )
  .join('\n')}`,
};
