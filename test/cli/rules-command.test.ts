/** Tests the parts of `quorate rules` that only read files and change nothing. */
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { temporaryDirectory } from '../cluster/harness.ts';
import { ended, ran } from './command.ts';

const USAGE = 64;
const RULES = 'rules:\n- {id: a, key: user, windows: {limit: 10, per: minute}}\n';

let directory: string;
beforeEach(async () => {
  directory = await temporaryDirectory();
  await writeFile(join(directory, 'rules.yaml'), RULES);
  await writeFile(join(directory, 'new.yaml'), RULES.replace('10', '5').replace('key', 'shadow: true, key'));
  await writeFile(join(directory, 'wrong.yaml'), RULES.replace('limit', 'limt'));
});
afterEach(async () => {
  await rm(directory, { recursive: true });
});

const rules = async (args: readonly string[], stdin = ''): ReturnType<typeof ran> =>
  ran(['rules', ...args], directory, stdin);

describe('rules check', () => {
  it('prints the rules of a document', async () => {
    const { code, stdout } = await rules(['check', 'rules.yaml']);
    expect(stdout).toBe('rules.yaml: 1 rule, 1 window\n  a: 10 per minute by user\n');
    expect(code).toBe(0);
  });

  it('reports all mistakes with their positions, and ends with 1', async () => {
    const { code, stdout } = await ended('quorate', ['rules', 'check', 'wrong.yaml'], directory);
    expect(stdout).toBe(
      'wrong.yaml:2:31: a window needs a limit from 0 to 1000000\n' +
        "wrong.yaml:2:32: unknown field 'limt'; did you mean limit?\n" +
        'wrong.yaml: 2 mistakes; they may hide others, so check again when they are corrected\n',
    );
    expect(code).toBe(1);
  });

  it('reads standard input', async () => {
    const { code, stdout } = await ended(
      'quorate',
      ['rules', 'check', '-'],
      directory,
      '{domain: d, descriptors: [{key: a, metadata: {}}]}',
    );
    expect(stdout).toBe(
      '-:1:36: note: metadata is left out: it is not sent with answers\n' +
        '-: 1 rule, 0 windows\n  d|a: unlimited by a, for a in d\n',
    );
    expect(code).toBe(0);
  });

  it('prints JSON', async () => {
    const right = await rules(['check', 'rules.yaml', '--json']);
    expect(JSON.parse(right.stdout)).toMatchObject({
      file: 'rules.yaml',
      ok: true,
      format: 'native',
      definitions: [{ id: 'a' }],
      notes: [],
    });
    const wrong = await rules(['check', '--json', '-'], 'rules: 5');
    expect(JSON.parse(wrong.stdout)).toEqual({
      file: '-',
      ok: false,
      kind: 'mistakes',
      mistakes: [{ line: 1, column: 8, message: 'rules must be a list of rules, but is 5' }],
      isComplete: true,
      notes: [],
    });
    expect([right.code, wrong.code]).toEqual([0, 1]);
  });

  it('reports more windows than a cluster keeps, and a document that is too large to read', async () => {
    const many = Array.from({ length: 1_025 }, (_, i) => `- {id: r${i}, windows: {limit: 1, per: day}}\n`);
    const { code, stdout } = await rules(['check', '-'], `rules:\n${many.join('')}`);
    expect(stdout).toContain('-: note: a cluster keeps at most 1,024 windows, and will refuse these\n');
    expect(code).toBe(0);
    const long = await rules(['check', '-'], ' '.repeat(2 ** 21));
    expect(long.stdout).toMatch(/^-:1:1: a document may have at most 1048576 bytes/);
    expect(long.code).toBe(1);
  });
});

describe('rules diff', () => {
  it('prints the changes', async () => {
    const { code, stdout } = await rules(['diff', 'rules.yaml', 'new.yaml']);
    expect(stdout).toBe(
      'a limits differently\n  limit per minute: 10 per minute -> 5 per minute (tighter)\n' +
        '  shadow: no -> yes (looser)\n',
    );
    expect(code).toBe(0);
    const same = await rules(['diff', 'rules.yaml', '-'], RULES);
    expect(same).toMatchObject({ code: 0, stdout: 'nothing changes\n' });
  });

  it('prints JSON', async () => {
    const { stdout } = await rules(['diff', 'rules.yaml', 'new.yaml', '--json']);
    expect(JSON.parse(stdout)).toMatchObject({ ok: true, changes: [{ kind: 'changed', id: 'a' }] });
    const wrong = await rules(['diff', 'wrong.yaml', 'new.yaml', '--json']);
    expect(JSON.parse(wrong.stdout)).toMatchObject({ ok: false, files: [{ file: 'wrong.yaml' }] });
    expect(wrong.code).toBe(1);
  });

  it('reports the mistakes of both documents', async () => {
    const { code, stdout } = await rules(['diff', 'wrong.yaml', '-'], 'rule: []');
    expect(stdout).toContain('wrong.yaml:2:32: unknown field');
    expect(stdout).toContain("-:1:1: unknown field 'rule'; did you mean rules?");
    expect(code).toBe(1);
  });
});

describe('a wrong command line', () => {
  it.each([
    [['check', 'absent.yaml'], 'absent.yaml is not there; give a file, or - for standard input'],
    [['check', 'folder'], 'folder is a directory; give a file'],
    [['diff', 'rules.yaml', 'absent.yaml'], 'absent.yaml is not there'],
    [['diff', '-', '-'], '- can be read once; name a file'],
    [['check'], "missing required argument 'file'"],
    [['chekc'], "unknown command 'chekc'"],
  ] as const)('%j is refused in a sentence', async (args, message) => {
    await mkdir(join(directory, 'folder'));
    const before = await readdir(directory);
    const { code, said } = await rules(args);
    expect(said).toContain(message);
    expect(said).toMatch(/^quorate: /);
    expect(code).toBe(USAGE);
    expect(await readdir(directory)).toEqual(before);
  });

  it('--help prints the usage', async () => {
    const { code, stdout } = await rules(['check', '--help']);
    expect(stdout).toContain('Usage: quorate rules check [options] <file>');
    expect(stdout).toContain('--json');
    expect(code).toBe(0);
  });
});
