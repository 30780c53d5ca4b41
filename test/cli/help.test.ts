/** Tests that `--help` of every command has the same form, and describes the same option in the same words. */
import { describe, expect, it } from 'vitest';
import { ran, ROOT } from './command.ts';
import { misunderstood, type Walked, walked } from './walk.ts';

const COMMANDS = walked();

/** The description without its default value, which may differ. */
function wordsOf(description: string): string {
  return description.replace(/ \(default: [^()]*(?:\([^()]*\)[^()]*)*\)$/, '');
}

/** All descriptions of each option, by its name. */
function wordings(
  pick: (walked: Walked) => readonly (readonly [string, string])[],
): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>();
  for (const each of COMMANDS)
    for (const [name, words] of pick(each)) found.set(name, (found.get(name) ?? new Set()).add(words));
  return found;
}

function several(found: ReadonlyMap<string, ReadonlySet<string>>): (readonly [string, readonly string[]])[] {
  return [...found].filter(([, words]) => words.size > 1).map(([name, words]) => [name, [...words]]);
}

/** Returns the lines below a heading, up to the next empty line. */
function section(help: string, heading: RegExp): readonly string[] {
  const lines = help.split('\n');
  const start = lines.findIndex((line) => heading.test(line));
  if (start < 0) return [];
  const rest = lines.slice(start + 1);
  const end = rest.indexOf('');
  return rest.slice(0, end < 0 ? rest.length : end).filter((line) => line !== '');
}

it('there are commands to read', () => {
  expect(COMMANDS.length).toBeGreaterThan(35);
  expect(COMMANDS.map(({ path }) => path)).toEqual(
    expect.arrayContaining(['quorate', 'quorate rules show', 'quorate nodes add', 'quorate upgrade finish']),
  );
});

describe.each(COMMANDS)('$path --help', ({ path, command }) => {
  const [, ...words] = path.split(' ');

  it('has a usage line, one sentence, each argument and option, and an example that the command takes', async () => {
    const { code, stdout } = await ran([...words, '--help'], ROOT);
    expect(code).toBe(0);
    expect(stdout).toMatch(new RegExp(`^Usage: ${path}`));
    const description = command.description();
    expect(description).toMatch(/^[a-zA-Z][^\n]{9,118}$/);
    expect(description.replace(/\.$/, '')).not.toMatch(/\.\s|;.*;/);
    const isGroup = command.commands.length > 0;
    for (const argument of command.registeredArguments) {
      expect(argument.description).not.toBe('');
      expect(section(stdout, /^Arguments:$/).join('\n')).toMatch(new RegExp(`^ {2}${argument.name()} `, 'm'));
    }
    for (const option of command.options) {
      expect(option.description).not.toBe('');
      expect(section(stdout, /^Options:$/).join('\n')).toContain(`  ${option.flags}`);
    }
    const millis = command.options.filter(({ flags }) => flags.includes('<ms>'));
    for (const { description: says } of millis) expect(says).toContain('milliseconds');
    const examples = section(stdout, /^Examples?:$/);
    expect(examples.length).toBeGreaterThan(0);
    for (const example of examples) {
      expect(example).toContain(isGroup ? path.split(' ')[0] : path);
      const [, line = ''] = /quorate ([^|)>]*)/.exec(example) ?? [];
      expect([example, await misunderstood(line.trim().split(/\s+/))]).toEqual([example, undefined]);
    }
  });
});

describe('every --help', () => {
  it('describes options of one name in the same words', () => {
    const found = wordings(({ command }) =>
      command.options.map(({ long, description }) => [long ?? '', wordsOf(description)] as const),
    );
    expect(found.get('--node')?.size).toBe(1);
    expect(several(found)).toEqual([]);
  });

  it('writes the value of options of one name in the same way', () => {
    const found = wordings(({ command }) =>
      command.options.map(({ long, flags }) => [long ?? '', flags] as const),
    );
    expect(several(found)).toEqual([]);
  });

  it('has no two options with the same description', () => {
    const found = wordings(({ command }) =>
      command.options.map(({ long, description }) => [wordsOf(description), long ?? ''] as const),
    );
    expect(several(found)).toEqual([]);
  });

  it('describes the argument for the id of a node in the same words', () => {
    const words = COMMANDS.flatMap(({ command }) =>
      command.registeredArguments.map(({ description }) => wordsOf(description)),
    ).filter((each) => each.includes('of a node'));
    expect(words.length).toBeGreaterThan(7);
    expect(new Set(words)).toEqual(new Set(['the id of a node']));
  });
});

describe('commands that ask a cluster', () => {
  const asking = COMMANDS.filter(({ command }) => command.options.some(({ long }) => long === '--node'));

  it('are most of all commands', () => {
    expect(asking.length).toBeGreaterThan(20);
  });

  it.each(asking)('$path takes --node, --data and --ca', ({ command }) => {
    const taken = command.options.map(({ long }) => long);
    expect(taken).toEqual(expect.arrayContaining(['--node', '--data', '--ca', '--json']));
    expect(taken).not.toContain('--via');
    expect(taken).not.toContain('--id');
  });
});
