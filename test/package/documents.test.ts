/** Tests the documents: tables are well-formed, and links have targets. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ROOT } from './packed.ts';

const IGNORED = /^(?:\.|node_modules$|dist$|data$)/;
const DOCUMENTS = readdirSync(ROOT, { withFileTypes: true })
  .filter(({ name }) => !IGNORED.test(name))
  .flatMap((entry) =>
    entry.isDirectory()
      ? readdirSync(join(ROOT, entry.name), { recursive: true, encoding: 'utf8' }).map((path) =>
          join(entry.name, path),
        )
      : [entry.name],
  )
  .filter((path) => path.endsWith('.md'));

/** The text without examples, because a # in them is no heading. */
function proseOf(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8').replaceAll(/^```[^]*?^```/gm, '');
}

function anchorsOf(path: string): readonly string[] {
  return [...proseOf(path).matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}_ -]/gu, '')
      .replaceAll(' ', '-'),
  );
}

function leadsNowhere(from: string, link: string): boolean {
  const [path = '', anchor] = link.split('#');
  const target = path === '' ? from : relative(ROOT, join(ROOT, dirname(from), path));
  if (!existsSync(join(ROOT, target))) return true;
  return anchor !== undefined && target.endsWith('.md') && !anchorsOf(target).includes(anchor);
}

describe('the documents', () => {
  it('are all listed here', () => {
    expect(DOCUMENTS).toEqual(expect.arrayContaining(['README.md', join('src', 'client', 'PACKAGE.md')]));
  });

  it.each(DOCUMENTS)('have no table row without its header: %s', (path) => {
    const blocks = proseOf(path).split(/\n(?!\|)/);
    const tables = blocks.map((block) => block.split('\n').filter((line) => line.startsWith('|')));
    const headless = tables.filter(([first, line = '']) => first !== undefined && !/^[|: -]+$/.test(line));
    expect(headless).toEqual([]);
  });

  it.each(DOCUMENTS)('have no dead link: %s', (path) => {
    const links = [...proseOf(path).matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = '']) => link);
    const own = links.filter((link) => !/^[a-z]+:/.test(link));
    expect(own.filter((link) => leadsNowhere(path, link))).toEqual([]);
  });
});
