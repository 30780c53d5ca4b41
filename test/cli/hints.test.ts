/** Tests that every command line in hints, messages and documents is one that the commands accept. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ended, ROOT } from './command.ts';
import { misunderstood, walked } from './walk.ts';

/** Options of Node.js and curl. */
const FOREIGN = ['--enable-source-maps', '--max-old-space-size', '--max-semi-space-size', '--cacert'];
/** Folders whose messages name options. */
const NAMING = ['src/api', 'src/cli', 'src/config', 'src/node', 'src/tls', 'storage', 'cluster'];
const FOLDERS = ['src', 'cluster', 'docs', 'bench', 'raft', 'storage', 'test/package', 'test/clients'];
const FILES = ['README.md', 'SECURITY.md', 'CONTRIBUTING.md', 'Dockerfile'];
const READ = /\.(?:ts|tsx|mjs|md|html|ya?ml|sh|service|conf|json|tpl|txt)$/;

async function textsOf(folder: string): Promise<[string, string][]> {
  const names = await readdir(join(ROOT, folder), { recursive: true });
  const read = names.filter((name) => READ.test(name) && !name.includes('node_modules'));
  return Promise.all(read.map(async (name) => textOf(join(folder, name))));
}

async function textOf(path: string): Promise<[string, string]> {
  return [path, await readFile(join(ROOT, path), 'utf8')];
}

/** Finds command lines in backticks, in `<code>`, in strings of a manifest, and at the start of a line. */
function commandLines(text: string): string[] {
  const whole = text.replaceAll(/ ?\\\n\s*/g, ' ').replaceAll('\\`', '`');
  const found = [
    ...whole.matchAll(/`(?:npx )?quorate ([^`\n]+)`/g),
    ...whole.matchAll(/<code>quorate ([^<\n]+)<\/code>/g),
    ...whole.matchAll(/^(?:[-#*/ ]*)(?:npx quorate|quorate|q) ((?:[a-z][a-z-]*)(?: .*)?)$/gm),
    ...whole.matchAll(/(?:npx quorate|exec quorate|exec -T \S+ quorate) ((?:[a-z][a-z-]*) [^`\n]*)/g),
  ];
  return found.map(([, line = '']) => line);
}

/** Splits a command line roughly as a shell does: it stops at a comment or the next command, and replaces variables. */
function argumentsOf(line: string): string[] {
  return line
    .replaceAll(/\$\{addressText[^}]*\}/g, '127.0.0.1:1')
    .replaceAll(/\$\{[^}]*\}|\$\(\([^)]*\)\)|<\w+>/g, '1')
    .replace(/\s+#.*$|\s*(?:[|;<>(),]|&&|\.\.\.|'').*$/, '')
    .replaceAll(/ \$\w+$/g, '')
    .replaceAll(/\$\w+/g, '1')
    .trim()
    .split(/\s+/)
    .map((word) => word.replaceAll(/^['"]|['",.:]+$/g, ''))
    .filter((word) => word !== '');
}

describe('every command line in a message or document', () => {
  it('exists, with its options', async () => {
    const texts = [
      ...(await Promise.all(FOLDERS.map(textsOf))).flat(),
      ...(await Promise.all(FILES.map(textOf))),
    ];
    const named = texts.flatMap(([path, text]) => commandLines(text).map((line) => ({ path, line })));
    expect(named.length).toBeGreaterThan(80);
    const wrong: string[] = [];
    for (const { path, line } of named) {
      const complaint = await misunderstood(argumentsOf(line), true);
      if (complaint !== undefined) wrong.push(`${path}: quorate ${line}: ${complaint}`);
    }
    expect(wrong).toEqual([]);
  });

  it('is found by this test, also if it is wrong', async () => {
    const text =
      'see `quorate drain --node 2 --undo`, `quorate nodes bury 3`, and\n  npx quorate status --via 127.0.0.1:1\n';
    const lines = commandLines(text).map(argumentsOf);
    const complaints = await Promise.all(lines.map(async (words) => misunderstood(words, true)));
    expect(complaints).toEqual([
      expect.stringContaining("'--node <host:port>' argument '2' is invalid"),
      expect.stringContaining("unknown command 'bury'"),
      expect.stringContaining("unknown option '--via'"),
      expect.stringContaining("unknown option '--via'"),
    ]);
  });
});

describe('every option in a message', () => {
  it('is an option of a command', async () => {
    const known = new Set(walked().flatMap(({ command }) => command.options.map(({ long }) => long)));
    const { stdout } = await ended('start', ['--help'], ROOT);
    for (const [option] of stdout.matchAll(/--[a-z][a-z-]+/g)) known.add(option);
    for (const option of FOREIGN) known.add(option);
    const texts = (await Promise.all(NAMING.map(textsOf))).flat().filter(([path]) => path.endsWith('.ts'));
    const named = texts.flatMap(([path, text]) =>
      [...text.matchAll(/(?<![\w-])--[a-z][a-z-]+/g)].map(([option]) => [path, option] as const),
    );
    expect(named.length).toBeGreaterThan(100);
    expect(named.filter(([, option]) => !known.has(option))).toEqual([]);
  });
});
