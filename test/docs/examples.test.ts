/**
 * Examples of the documentation are right: JSON is JSON, rule documents are accepted, and programs compile against the
 * packages.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readRules } from '../../src/rules/read-rules.ts';
import { temporaryDirectory } from '../cluster/harness.ts';
import { ROOT } from '../package/packed.ts';

interface Example {
  /** File and line, for the message of a failure. */
  readonly at: string;
  readonly text: string;
}

const PAGES = [
  'README.md',
  ...readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.md'))
    .map((path) => join('docs', path)),
];
const BLOCK = /^( *)```(\w+)\n([^]*?)^ *```$/gm;
const TSCONFIG = {
  compilerOptions: {
    strict: true,
    target: 'es2023',
    lib: ['es2023', 'dom'],
    module: 'nodenext',
    moduleDetection: 'force',
    skipLibCheck: true,
    exactOptionalPropertyTypes: true,
    noEmit: true,
    allowJs: true,
    checkJs: true,
    allowImportingTsExtensions: true,
    types: ['node'],
    paths: {
      quorate: [join(ROOT, 'src/index.ts')],
      '@quorate/client': [join(ROOT, 'src/client/index.ts')],
      '@quorate/client/*': [join(ROOT, 'src/client/*.ts')],
    },
  },
};

function examplesIn(...languages: readonly string[]): readonly Example[] {
  return PAGES.flatMap((path) => {
    const page = readFileSync(join(ROOT, path), 'utf8');
    return [...page.matchAll(BLOCK)].flatMap(({ index, 1: indent = '', 2: language = '', 3: text = '' }) => {
      if (!languages.includes(language)) return [];
      const line = page.slice(0, index).split('\n').length;
      return [{ at: `${path}:${line}`, text: text.replaceAll(new RegExp(`^${indent}`, 'gm'), '') }];
    });
  });
}

describe('the examples of the documentation', () => {
  it.each(examplesIn('json'))('are JSON: $at', ({ text }) => {
    expect(() => JSON.parse(text) as unknown).not.toThrow();
  });

  it.each(examplesIn('yaml').filter(({ text }) => /^(?:unmatched|rules|tiers|domain):/m.test(text)))(
    'are documents of rules: $at',
    ({ text }) => {
      const read = readRules(text);
      expect(read.kind === 'rules' ? [] : read.mistakes).toEqual([]);
    },
  );

  it('are programs that compile', async () => {
    const folder = await temporaryDirectory();
    try {
      symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
      writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
      writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(TSCONFIG));
      for (const [i, { at, text }] of examplesIn('ts').entries()) {
        const path = join(folder, `${i}`);
        mkdirSync(path);
        writeFileSync(join(path, `${at.replaceAll(/\W+/g, '-')}.ts`), text);
      }
      expect(compiled(folder)).toBe('');
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

/** The errors of the compiler. */
function compiled(folder: string): string {
  const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
  try {
    return execFileSync(process.execPath, [tsc, '-p', folder, '--pretty', 'false'], { encoding: 'utf8' });
  } catch (error) {
    return (error as { readonly stdout: string }).stdout;
  }
}
