/** Tests that the examples in the library's comments return what they say, with the compiled package. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { ROOT } from './packed.ts';

/** Each file from which `src/index.ts` exports something. */
function filesOf(index: string): string[] {
  const exported = [...index.matchAll(/^export .* from '\.\/(.*)';$/gm)].map(
    ([, path = '']) => `src/${path}`,
  );
  return ['src/index.ts', ...exported.filter((path) => !path.endsWith('/arguments.ts'))];
}

const FILES = filesOf(readFileSync(join(ROOT, 'src/index.ts'), 'utf8'));
/** A line of an example: a call, its result, and perhaps the reason. */
const LINE = /^(\w+\.\w+\(.*\)); \/\/ ([\w.]+)(?::.*)?$/;

/** Lines of the example of a file. */
function exampleOf(path: string): string[] {
  const [, example = ''] = / \* @example\n([^]*?)\n \*\//.exec(readFileSync(join(ROOT, path), 'utf8')) ?? [];
  return example.split('\n').map((line) => line.replace(/^ \* ?/, ''));
}

function run(lines: readonly string[]): string[] {
  const body = lines
    .filter((line) => !line.startsWith('import '))
    .map((line) => line.replace(LINE, 'console.log($1);'));
  const program = `import * as library from 'quorate';\nObject.assign(globalThis, library);\n${body.join('\n')}`;
  const args = ['--input-type=module', '-e', program];
  return execFileSync(process.execPath, args, { cwd: ROOT, encoding: 'utf8' }).trim().split('\n');
}

it('has an example for each class', () => {
  expect(FILES).toHaveLength(7);
  expect(FILES.filter((path) => !exampleOf(path).some((line) => LINE.test(line)))).toEqual([]);
});

it.each(FILES)('returns what the example promises: %s', (path) => {
  const lines = exampleOf(path);
  const said = lines.flatMap((line) => LINE.exec(line)?.[2] ?? []);
  expect(run(lines)).toEqual(said);
});
