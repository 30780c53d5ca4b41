/** Every test that the pages of requirements name exists and runs. */
import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';

const PAGES = ['requirements.md', 'requirements-002-to-004.md'].map(
  (name) => new URL(`../../docs/internals/${name}`, import.meta.url),
);

async function pages(): Promise<string> {
  const texts = await Promise.all(PAGES.map(async (page) => readFile(page, 'utf8')));
  return texts.join('\n');
}
const NAMED = /`([\w/-]+\.test\.ts)`: ((?:"[^"]+"(?:, )?)+)/g;

interface Row {
  readonly number: string;
  readonly cells: string;
  readonly tests: readonly { readonly file: string; readonly title: string }[];
}

/** A row is a list item, `- **000-01** ...`, with its own items. Its lines may break anywhere between two words. */
async function rows(): Promise<readonly Row[]> {
  const page = await pages();
  return [...page.matchAll(/^- \*\*(\d{3}-\d{2})\*\*(.*(?:\n {2}.*)*)/gm)].map(
    ([, number = '', lines = '']) => {
      const cells = lines.replaceAll(/\n +/g, ' ');
      const tests = [...cells.matchAll(NAMED)].flatMap(([, file = '', titles = '']) =>
        [...titles.matchAll(/"([^"]+)"/g)].map(([, title = '']) => ({ file, title })),
      );
      return { number, cells, tests };
    },
  );
}

/** The call that declares a test or a group with this title: `it.skip(`, `describe(`. Undefined if there is none. */
function callOf(source: string, title: string): string | undefined {
  const at = source.indexOf(title);
  const before = at === -1 ? '' : source.slice(0, at);
  return /\b(?:it|test|describe)[\w.]*(?=[^;]*$)/.exec(
    before.slice(-4_000).split('\n').slice(-40).join('\n'),
  )?.[0];
}

describe('each requirement', () => {
  it('is covered by existing tests that are not skipped, or is marked as missing', async () => {
    const wrong: string[] = [];
    const all = await rows();
    expect(all.length).toBe(117);
    for (const { number, cells, tests } of all) {
      const isSaid = /\*\*(?:Not yet|Differs)\*\*/.test(cells);
      if (tests.length === 0 && !isSaid && !/\d{3}-\d{2}/.test(cells))
        wrong.push(`${number} is covered by no test`);
      for (const { file, title } of tests) {
        const source = await readFile(new URL(`../${file}`, import.meta.url), 'utf8').catch(() => '');
        const call = callOf(source, title);
        if (call === undefined) wrong.push(`${number}: ${file} has no "${title}"`);
        else if (/\.(?:skip|todo|fails)\b/.test(call)) wrong.push(`${number}: ${file} skips "${title}"`);
      }
    }
    expect(wrong).toEqual([]);
  });

  it('is counted in the table as the rows say', async () => {
    const page = await pages();
    const all = await rows();
    for (const document of ['000', '001', '002', '003', '004']) {
      const own = all.filter(({ number }) => number.startsWith(document));
      const missing = own.filter(({ cells }) => cells.includes('**Not yet**')).length;
      const differs = own.filter(({ cells }) => cells.includes('**Differs**')).length;
      const reported = new RegExp(
        `^\\| ${document} [^|]*\\|\\s*(\\d+)\\s*\\|\\s*(\\d+)\\s*\\|\\s*(\\d+)\\s*\\|`,
        'm',
      ).exec(page);
      expect([document, ...(reported ?? []).slice(1).map(Number)]).toEqual([
        document,
        own.length - missing - differs,
        missing,
        differs,
      ]);
    }
  });
});
