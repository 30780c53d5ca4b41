/** File errors of the operating system name the file and the remedy. */
import { mkdir, mkdtemp, open, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { explain } from '../../src/cli/explain-error.ts';
import { StoreFailedError, StoreOpenError } from '../../storage/errors.ts';
import { fileAdvice, naming } from '../../storage/file-errors.ts';
import { writeFloor, writeTextSynced } from '../../storage/files.ts';

function systemError(code: string): Error {
  return Object.assign(new Error(`${code}: x, open '/data/a'`), { code, syscall: 'open', path: '/data/a' });
}

describe('an error of a file', () => {
  let directory: string;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'quorate-test-'));
  });
  afterEach(async () => rm(directory, { recursive: true }));

  it.runIf(process.platform === 'linux')('of a full disk names the file and the remedy', async () => {
    const path = join(directory, 'FLOOR.new');
    await symlink('/dev/full', path);
    const error = await writeFloor(directory, { batch: 1, tornLogs: [] }).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'ENOSPC', path });
    expect(explain(error).message).toBe(
      `ENOSPC: no space left on device, write '${path}': make room on its disk`,
    );
  });

  it('names the path once if Node names it already', async () => {
    const path = join(directory, 'missing', 'a.new');
    const error = await writeTextSynced(join(directory, 'missing'), 'a', '').catch(
      (thrown: unknown) => thrown,
    );
    expect((error as Error).message.split(path)).toHaveLength(2);
  });

  it('names the path if that is a directory', async () => {
    const path = join(directory, 'a');
    await mkdir(path);
    const read = async (): Promise<unknown> => {
      const file = await open(path, 'r');
      try {
        return await file.readFile();
      } finally {
        await file.close();
      }
    };
    await expect(naming(path, read)).rejects.toMatchObject({ code: 'EISDIR', path });
  });
});

describe('the remedy', () => {
  it.each([
    ['ENOSPC', 'make room'],
    ['EDQUOT', 'quota'],
    ['EACCES', 'let the user that runs this read and write there'],
    ['EROFS', 'for writing'],
    ['EIO', 'dmesg'],
    ['EMFILE', 'ulimit -n'],
  ])('for %s is in the message', (code, advice) => {
    expect(explain(systemError(code)).message).toContain(advice);
  });

  it.each([
    ['No space left on device', 'make room on its disk'],
    ['Input/output error', 'dmesg'],
    ['Read-only file system', 'for writing'],
    ['Permission denied', 'let the user'],
  ])("for LevelDB's %s is in the message", (words, advice) => {
    const cause = new Error(`IO error: /data/node-1/000003.log: ${words}`);
    for (const error of [
      new StoreFailedError({ cause }),
      new StoreOpenError('/data/node-1', cause.message, { cause }),
    ]) {
      expect(error.message).toContain('/data/node-1/000003.log');
      expect(error.message).toContain(advice);
    }
  });

  it('is undefined for other errors', () => {
    expect(fileAdvice(new Error('x'))).toBeUndefined();
    expect(fileAdvice(systemError('ENOENT'))).toBeUndefined();
  });
});
