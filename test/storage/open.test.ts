/** Which directories can be opened, and which can be bootstrapped. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, cp, mkdir, readdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { bootstrapStore } from '../../storage/bootstrap-store.ts';
import { StoreOpenError } from '../../storage/errors.ts';
import { lockDirectory, lockName } from '../../storage/lock.ts';
import { openStore } from '../../storage/open-store.ts';
import { FACTS, IDENTITY, append, createStore, entries, scratch, written } from './fixtures.ts';
import { FORMAT_VERSION } from '../../storage/records.ts';

const IDENTITY_OF_2 = { ...IDENTITY, nodeId: 2, incarnation: '2'.repeat(32) };
let directory: string;
let remove: () => Promise<void>;

beforeEach(async () => {
  const root = await scratch();
  directory = join(root.directory, 'a', 'store');
  remove = root.remove;
});
afterEach(() => remove());

describe('bootstrap', () => {
  it('creates the directory and an empty database that opens', async () => {
    await bootstrapStore(directory, IDENTITY);
    const store = await openStore(directory, IDENTITY);
    expect(store.groups()).toEqual([]);
    await store.close();
    expect(await readdir(directory)).not.toContain('BOOTSTRAPPING');
  });

  it('refuses a directory that holds a database, and leaves it alone', async () => {
    const store = await createStore(directory);
    await written(store, [append(1, entries(1, 3))]);
    await store.close();
    await expect(bootstrapStore(directory, IDENTITY)).rejects.toMatchObject({ code: 'STORE_EXISTS' });
    const again = await openStore(directory, IDENTITY);
    expect((await again.load(1))?.entries).toEqual(entries(1, 3));
    await again.close();
  });

  it.each(['CURRENT', 'MANIFEST-000002', '000005.ldb', '000006.log', 'DAMAGED', 'FLOOR'])(
    'refuses a directory that holds only %s of a database',
    async (name) => {
      await mkdir(directory, { recursive: true });
      await writeFile(join(directory, name), '');
      await expect(bootstrapStore(directory, IDENTITY)).rejects.toThrow(`it already contains ${name}`);
    },
  );

  it('ignores files that are not a database', async () => {
    await mkdir(join(directory, 'lost+found'), { recursive: true });
    await bootstrapStore(directory, IDENTITY);
    expect(await readdir(directory)).toContain('lost+found');
  });

  it('refuses while the directory is in use', async () => {
    const store = await createStore(directory);
    await expect(bootstrapStore(directory, IDENTITY)).rejects.toMatchObject({ code: 'STORE_LOCKED' });
    await store.close();
  });

  it('can be repeated after it died at any step, and until then the directory does not open', async () => {
    await bootstrapStore(directory, IDENTITY);
    const files = (await readdir(directory)).filter((name) => name !== 'LOCK');
    // Each prefix of the list of files: a power cut may leave such a part of them.
    for (let kept = 0; kept <= files.length; kept += 1) {
      const partial = join(directory, '..', `partial-${kept}`);
      await mkdir(partial);
      for (const name of files.slice(0, kept)) await copyFile(join(directory, name), join(partial, name));
      await writeFile(join(partial, 'BOOTSTRAPPING'), '');
      await expect(openStore(partial, IDENTITY)).rejects.toMatchObject({ code: 'STORE_NOT_INITIALISED' });
      await bootstrapStore(partial, IDENTITY_OF_2);
      await (await openStore(partial, IDENTITY_OF_2)).close();
    }
  });

  it('can be repeated if it died before its marker was in place', async () => {
    await mkdir(directory, { recursive: true });
    await writeFile(join(directory, 'BOOTSTRAPPING.new'), '');
    await expect(openStore(directory, IDENTITY)).rejects.toMatchObject({ code: 'STORE_NOT_INITIALISED' });
    await bootstrapStore(directory, IDENTITY);
    const store = await openStore(directory, IDENTITY);
    expect(store.groups()).toEqual([]);
    await store.close();
  });
});

describe('opening', () => {
  it('113: refuses a directory that is missing or empty, and creates nothing', async () => {
    await expect(openStore(directory, IDENTITY)).rejects.toMatchObject({ code: 'STORE_NOT_INITIALISED' });
    await mkdir(directory, { recursive: true });
    await expect(openStore(directory, IDENTITY)).rejects.toThrow(
      /`quorate init` .*`quorate join` .*never create a database under its old id/,
    );
    expect(await readdir(directory)).toEqual([]);
  });

  it.each([
    ['clusterId', { facts: { ...FACTS, clusterId: 'cluster-b' } }, 'cluster-b', 'cluster-a'],
    ['node id', { nodeId: 2 }, '2', '1'],
    ['formatVersion', { facts: { ...FACTS, formatVersion: 99 } }, '99', String(FORMAT_VERSION)],
    ['partitions', { facts: { ...FACTS, partitions: 7 } }, '7', '4'],
    ['replicas', { facts: { ...FACTS, replicas: 1 } }, '1', '3'],
    ['hash', { facts: { ...FACTS, hash: 'crc16' } }, 'crc16', 'xxh32'],
    [
      'founders',
      { facts: { ...FACTS, founders: FACTS.founders.slice(0, 2) } },
      `1 (${'1'.repeat(32)}), 2 (${'2'.repeat(32)})`,
      `1 (${'1'.repeat(32)}), 2 (${'2'.repeat(32)}), 3 (${'3'.repeat(32)})`,
    ],
    ['incarnation', { incarnation: 'f'.repeat(32) }, 'f'.repeat(32), '1'.repeat(32)],
  ])('114: refuses another %s and does not call it damage', async (field, difference, found, expected) => {
    await bootstrapStore(directory, { ...IDENTITY, ...difference });
    const refusal = await openStore(directory, IDENTITY).catch((error: unknown) => error);
    expect(refusal).toMatchObject({ code: 'STORE_FOREIGN', field });
    expect(String(refusal)).toContain(
      `was created with ${field} ${found}, but this node is configured with ${expected}`,
    );
    expect(await readdir(directory)).not.toContain('DAMAGED');
  });

  it('refuses while another store of this process has the directory open, by any path', async () => {
    const store = await createStore(directory);
    await symlink(directory, `${directory}-link`);
    for (const path of [directory, `${directory}-link`]) {
      await expect(openStore(path, IDENTITY)).rejects.toMatchObject({ code: 'STORE_LOCKED' });
    }
    await store.close();
    await (await openStore(`${directory}-link`, IDENTITY)).close();
  });

  it('frees the directory when it refuses', async () => {
    await bootstrapStore(directory, IDENTITY_OF_2);
    await expect(openStore(directory, IDENTITY)).rejects.toMatchObject({ code: 'STORE_FOREIGN' });
    await (await openStore(directory, IDENTITY_OF_2)).close();
  });

  it('does not take an error of the operating system for damage', async () => {
    await bootstrapStore(directory, IDENTITY);
    // LevelDB cannot move or write LOG here, as with missing permissions or a full disk.
    await rm(join(directory, 'LOCK'));
    await mkdir(join(directory, 'LOCK'));
    await expect(openStore(directory, IDENTITY)).rejects.toBeInstanceOf(StoreOpenError);
    await rm(join(directory, 'LOCK'), { recursive: true });
    await (await openStore(directory, IDENTITY)).close();
  });

  it('fails if its first write fails, and recovers at the next start', async () => {
    await bootstrapStore(directory, IDENTITY);
    const opening = openStore(directory, IDENTITY, {
      wrapDatabase: (database) => ({
        syncedBatch: (_operations, done) => queueMicrotask(() => done(new Error('IO error: injected'))),
        get: (key) => database.get(key),
        scan: (range, visit) => database.scan(range, visit),
        compact: (range) => database.compact(range),
        close: () => database.close(),
      }),
    });
    await expect(opening).rejects.toMatchObject({ code: 'STORE_FAILED' });
    await (await openStore(directory, IDENTITY)).close();
  });

  it('refuses an older copy of a directory whose store was stopped cleanly later', async () => {
    const store = await createStore(directory);
    await written(store, [append(1, entries(1, 3))]);
    await store.close();
    const backup = `${directory}-backup`;
    await cp(directory, backup, { recursive: true });
    const later = await openStore(directory, IDENTITY);
    await written(later, [append(1, entries(4, 9))]);
    await later.close();
    // A copy of LevelDB's files alone; with FLOOR copied as well, nothing on this disk could show it.
    await copyFile(join(directory, 'FLOOR'), join(backup, 'FLOOR'));
    await expect(openStore(backup, IDENTITY)).rejects.toMatchObject({ code: 'STORAGE_DAMAGED' });
  });
});

async function stop(child: ChildProcess): Promise<void> {
  const exit = once(child, 'exit');
  child.kill('SIGKILL');
  await exit;
}

describe('another process', () => {
  const running: ChildProcess[] = [];
  afterEach(() => {
    for (const child of running.splice(0)) child.kill('SIGKILL');
  });

  /** Runs a script until it prints a line. */
  async function startHolder(script: string, argument: string): Promise<ChildProcess> {
    const child = spawn(process.execPath, ['--input-type=module', '--eval', script, argument], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    running.push(child);
    await once(child.stdout, 'data');
    return child;
  }

  it("that has the database open, without the store's lock, is noticed by LevelDB", async () => {
    await bootstrapStore(directory, IDENTITY);
    const script = `
      import { Level } from 'level';
      const level = new Level(process.argv[1]);
      await level.open();
      console.log('open');
      setInterval(() => {}, 1000);`;
    const child = await startHolder(script, directory);
    await expect(openStore(directory, IDENTITY)).rejects.toMatchObject({ code: 'STORE_LOCKED' });
    await stop(child);
    await (await openStore(directory, IDENTITY)).close();
  });

  it.runIf(process.platform === 'linux')(
    'is kept out by one lock for each directory, by any of its paths',
    async () => {
      // As in containers in one network namespace: another directory at the same path.
      const moved = `${directory}-moved`;
      const link = `${directory}-link`;
      await mkdir(directory, { recursive: true });
      const lock = await lockDirectory(directory);
      try {
        await symlink(directory, link);
        await expect(lockDirectory(link)).rejects.toMatchObject({ code: 'STORE_LOCKED' });
        await rename(directory, moved);
        await mkdir(directory);
        await (await lockDirectory(directory)).release();
        await expect(lockDirectory(moved)).rejects.toMatchObject({ code: 'STORE_LOCKED' });
      } finally {
        await lock.release();
        for (const path of [moved, link]) await rm(path, { recursive: true, force: true });
      }
    },
  );

  it.runIf(process.platform === 'linux')(
    "that holds the store's lock keeps this one from opening LevelDB",
    async () => {
      await bootstrapStore(directory, IDENTITY);
      const before = await readdir(directory);
      const script = `
      import { createServer } from 'node:net';
      createServer().listen({ path: '\\0' + process.argv[1] }, () => console.log('locked'));`;
      const name = await lockName(directory);
      const child = await startHolder(script, name.slice(1));
      await expect(openStore(directory, IDENTITY)).rejects.toMatchObject({ code: 'STORE_LOCKED' });
      expect(await readdir(directory)).toEqual(before);
      // The kernel frees the lock when the process ends.
      await stop(child);
      const lock = await lockDirectory(directory);
      await lock.release();
      await (await openStore(directory, IDENTITY)).close();
    },
  );
});
