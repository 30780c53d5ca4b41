/**
 * Tests that the package contains exactly the files that run. Checks that need a registry are in `npm run
 * package:check`.
 */
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join, normalize, relative } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { packedFiles, ROOT } from './packed.ts';

/** What users import. */
async function entries(kind: 'types' | 'default'): Promise<string[]> {
  const { exports } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as {
    readonly exports: Readonly<Record<string, string | Readonly<Record<typeof kind, string>>>>;
  };
  return Object.values(exports).flatMap((entry) => (typeof entry === 'string' ? [] : normalize(entry[kind])));
}

/** All files that `first` imports, directly or through others. */
async function closureOf(
  first: string,
  ending: { readonly from: string; readonly to: string },
): Promise<string[]> {
  const found = new Set<string>([first]);
  for (const path of found) {
    const text = await readFile(join(ROOT, path), 'utf8');
    for (const [, target = ''] of text.matchAll(/(?:from|import)\s*\(?\s*['"](\.[^'"]+)['"]/g))
      found.add(normalize(join(dirname(path), target)).replace(ending.from, ending.to));
  }
  return [...found];
}

describe('the package', () => {
  let files: string[];
  beforeAll(async () => {
    files = await packedFiles();
  });

  it('holds every compiled file that the command and the library need', async () => {
    const same = { from: '.js', to: '.js' };
    const command = await closureOf('bin/quorate.mjs', same);
    const libraries = await Promise.all(
      (await entries('default')).map(async (path) => closureOf(path, same)),
    );
    expect(libraries.map(([first]) => first)).toEqual(['dist/src/index.js']);
    expect(command).toContain('dist/raft/core.js');
    expect([...command, ...libraries.flat()].filter((path) => !files.includes(path))).toEqual([]);
  });

  it('holds the types of the libraries, and no others', async () => {
    const ending = { from: '.ts', to: '.d.ts' };
    const closures = await Promise.all((await entries('types')).map(async (path) => closureOf(path, ending)));
    const types = new Set(closures.flat());
    expect(files.filter((path) => path.endsWith('.ts'))).toEqual([...types].toSorted());
  });

  it('does not contain the client, which has its own package', () => {
    expect(files.filter((path) => path.startsWith('dist/src/client/'))).toEqual([]);
  });

  it('holds the page of the dashboard, with all files that it refers to', async () => {
    const page = await readFile(join(ROOT, 'dist/dashboard/index.html'), 'utf8');
    const named = [...page.matchAll(/(?:src|href)="\/([^"]+)"/g)].map(([, path = '']) => `dist/${path}`);
    expect(named.length).toBeGreaterThan(2);
    expect(['dist/dashboard/index.html', ...named].filter((path) => !files.includes(path))).toEqual([]);
  });

  it('holds the document that its nodes serve, at the path that they read', () => {
    const named = createRequire(import.meta.url).resolve('quorate/openapi.json');
    expect(files).toContain(relative(ROOT, named));
  });

  it('holds no test, source, map or folder that users cannot run', () => {
    const isOurs =
      /^dist\/(?:(?:src|raft|storage)\/.*\.(?:js|d\.ts)|dashboard\/[\w.-]+\.(?:html|js|css|svg|md))$/;
    const others = files.filter((path) => !isOurs.test(path));
    expect(others.filter((path) => !/^docs\/.+\.md$/.test(path))).toEqual([
      'CHANGELOG.md',
      'LICENSE',
      'README.md',
      'bin/quorate.mjs',
      'docs/openapi.json',
      'package.json',
    ]);
  });
});
