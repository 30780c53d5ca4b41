/**
 * Bounds that keep the documentation readable: a short README, short pages, short lines. Links are tested in
 * `test/package/documents.test.ts`.
 */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ROOT } from '../package/packed.ts';

const README_BYTES_MAX = 8 * 1_024;
const PAGE_LINES_MAX = 300;
const LINE_LENGTH_MAX = 140;
const PAGES = readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.md'))
  .map((path) => `docs/${path}`)
  .toSorted();

function linesOf(path: string): readonly string[] {
  return readFileSync(join(ROOT, path), 'utf8').trimEnd().split('\n');
}

describe('the documentation', () => {
  it('begins with a short README', () => {
    expect(statSync(join(ROOT, 'README.md')).size).toBeLessThanOrEqual(README_BYTES_MAX);
  });

  it.each(PAGES)('has no page that is too long: %s', (path) => {
    expect(linesOf(path).length).toBeLessThanOrEqual(PAGE_LINES_MAX);
  });

  it.each(['README.md', 'CONTRIBUTING.md', 'SECURITY.md', 'CHANGELOG.md', ...PAGES])(
    'has no line that is too wide: %s',
    (path) => {
      expect(linesOf(path).filter((line) => line.length > LINE_LENGTH_MAX)).toEqual([]);
    },
  );

  it('lists every page in its index', () => {
    const index = readFileSync(join(ROOT, 'docs/README.md'), 'utf8');
    const listed = [...index.matchAll(/\]\(([^)#\s]+\.md)/g)].map(([, path = '']) => `docs/${path}`);
    expect(PAGES.filter((path) => path !== 'docs/README.md' && !listed.includes(path))).toEqual([]);
  });
});
