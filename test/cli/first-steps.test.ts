/** Tests the first commands after a fresh clone. */
import { execFile } from 'node:child_process';
import { rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { temporaryDirectory } from '../cluster/harness.ts';
import { ended, ran, ROOT } from './command.ts';

const VERSION = /^\d+\.\d+\.\d+\n$/;

describe('in a clone', () => {
  let home: string;
  beforeEach(async () => {
    home = await temporaryDirectory();
  });
  afterEach(async () => {
    await rm(home, { recursive: true });
  });

  it('npx quorate is found', async () => {
    // npm links a command only to an existing, executable file.
    expect((await stat(join(ROOT, 'bin', 'quorate.mjs'))).mode & 0o111).toBe(0o111);
    const { stdout } = await promisify(execFile)('npx', ['quorate', '--version'], {
      cwd: ROOT,
      env: { ...process.env, HOME: home, npm_config_cache: `${home}/.npm`, npm_config_offline: 'true' },
    });
    expect(stdout).toMatch(VERSION);
  });

  it.each([
    ['quorate', ['--help'], ['init', 'node', 'join', 'nodes', '--version']],
    ['quorate', ['node', '--help'], ['<id>', '--data', '--log-level']],
    ['quorate', ['nodes', 'add', '--help'], ['--replace', '--node', '--timeout']],
    ['start', ['--help'], ['--fresh', '--nodes', '--base-port', 'gRPC']],
  ] as const)('%s %j lists commands and options', async (command, args, words) => {
    const { code, stdout } = await (command === 'start' ? ended(command, args, home) : ran(args, home));
    expect(code).toBe(0);
    for (const word of words) expect(stdout).toContain(word);
  });

  it('quorate --version prints the version', async () => {
    expect(await ended('quorate', ['--version'], home)).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(VERSION) as string,
    });
  });
});
