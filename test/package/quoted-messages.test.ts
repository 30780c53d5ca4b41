/** The messages that the pages for operators quote are messages that the code writes. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ROOT } from './packed.ts';

const PAGES = 'docs/operate';
const PAGE = 'docs/operate/troubleshooting.md';
const FOLDERS = ['src', 'raft', 'storage'];
/** Quoted texts that are no messages: commands, and contents of settings files. */
const NO_MESSAGE = /^(?:quorate |dmesg |[\w"]+: )/;
const EXAMPLE_ID = /(?<= node )\d+/g;

async function sourceIn(folder: string): Promise<string> {
  const names = await readdir(join(ROOT, folder), { recursive: true });
  const files = names.filter((name) => name.endsWith('.ts'));
  return (await Promise.all(files.map(async (name) => readFile(join(ROOT, folder, name), 'utf8')))).join(
    '\n',
  );
}

/** Texts of several words between backticks; a line break is a space. */
function quotedIn(page: string): readonly string[] {
  return [...page.matchAll(/`([^`]+)`/g)]
    .map(([, text = '']) => text.replaceAll(/\s+/g, ' '))
    .filter((text) => text.includes(' ') && !NO_MESSAGE.test(text));
}

/** The source joins long strings from parts and inserts values. */
function plain(source: string): string {
  return source.replaceAll(/['`] \+\s*['`]/g, '').replaceAll(/(?<= node )\$\{[^}]*\}/g, 'ID');
}

/** What a log or a command says or writes, if it is quoted right after that word and has several words. */
function saidIn(page: string): readonly string[] {
  return [...page.matchAll(/\b(?:says|writes|logs)\s+`([^`]+\s[^`]+)`/g)]
    .map(([, text = '']) => text.replaceAll(/\s+/g, ' '))
    .filter((text) => !NO_MESSAGE.test(text));
}

async function sources(): Promise<string> {
  return plain((await Promise.all(FOLDERS.map(sourceIn))).join('\n'));
}

describe('the messages that the pages for operators quote', () => {
  it('are written by the code, on every page', async () => {
    const names = await readdir(join(ROOT, PAGES));
    const pages = await Promise.all(names.map(async (name) => readFile(join(ROOT, PAGES, name), 'utf8')));
    const said = pages.flatMap(saidIn);
    expect(said.length).toBeGreaterThan(5);
    const source = await sources();
    expect(said.filter((text) => !source.includes(text))).toEqual([]);
  });

  it('are written by the code, all that stand on the troubleshooting page', async () => {
    const source = await sources();
    const quoted = quotedIn(await readFile(join(ROOT, PAGE), 'utf8'));
    expect(quoted.length).toBeGreaterThan(25);
    expect(quoted.filter((text) => !source.includes(text.replaceAll(EXAMPLE_ID, 'ID')))).toEqual([]);
  });
});
