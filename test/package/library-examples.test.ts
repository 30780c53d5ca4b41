/** Tests that the examples in the library's comments return what they say, with the compiled package. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { ROOT } from './packed.ts';

const INDEX = 'src/index.ts';

/** The library's classes with their files, as `src/index.ts` exports them; and `src/index.ts` itself. */
function documented(): (readonly [name: string, path: string])[] {
  const index = readFileSync(join(ROOT, INDEX), 'utf8');
  const exported = [...index.matchAll(/^export \{([^}]*)\} from '\.\/(.*)';$/gm)].flatMap(
    ([, names = '', path = '']) => names.split(',').map((name) => [name.trim(), `src/${path}`] as const),
  );
  const classes = exported.filter(([name]) => name !== '' && !/^type |Error$/.test(name));
  return [['the library', INDEX], ...classes];
}

/** A line of an example: a call, its result, and perhaps the reason. */
const LINE = /^(\w+\.\w+\(.*\)); \/\/ ([\w.]+)(?::.*)?$/;

/** Lines of the example in the comment above a class, or of the first example of `src/index.ts`. */
function exampleOf(name: string, path: string): string[] {
  const source = readFileSync(join(ROOT, path), 'utf8');
  const end = path === INDEX ? '' : `\nexport class ${name} `;
  const [, example = ''] = new RegExp(` \\* @example\\n((?: \\*.*\\n)*?) \\*/${end}`).exec(source) ?? [];
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

const DOCUMENTED = documented();

it('has an example for each class', () => {
  expect(DOCUMENTED).toHaveLength(7);
  expect(DOCUMENTED.filter((one) => !exampleOf(...one).some((line) => LINE.test(line)))).toEqual([]);
});

it.each(DOCUMENTED)('returns what the example promises: %s', (name, path) => {
  const lines = exampleOf(name, path);
  const said = lines.flatMap((line) => LINE.exec(line)?.[2] ?? []);
  expect(run(lines)).toEqual(said);
});
