/**
 * Tests that an interrupted backup or restore can be repeated, and that damage is found before anything is created.
 */
import { appendFile, mkdir, readdir, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { BackupError } from '../../src/backup/backup-error.ts';
import { checkBackup } from '../../src/backup/check-backup.ts';
import { type Manifest, MANIFEST_FILE, parseManifest, readManifest } from '../../src/backup/manifest.ts';
import { type Restored, restoreCluster } from '../../src/backup/restore-cluster.ts';
import { hasTokens } from '../../src/node/access.ts';
import { readKnownMembers, writeKnownMembers } from '../../src/node/member-cache.ts';
import { type BackupSource, takeBackup } from '../../src/backup/take-backup.ts';
import { localConfig, nodeDirectory, readCluster } from '../../src/config/cluster-directory.ts';
import { temporaryDirectory } from '../cluster/harness.ts';
import { seeded } from '../raft/seeded.ts';
import { PlayedSource } from './played-source.ts';

const SEED = Number(process.env['BACKUP_SEED'] ?? Math.floor(Math.random() * 1e6));
class Cut extends Error {}

let root = '';
let source: PlayedSource;
let names = 0;

const fresh = (): string => join(root, `${(names += 1)}`);
const print = (): void => undefined;
const take = async (directory: string): Promise<Manifest> =>
  takeBackup({ directory, source, print, againMillis: 1 });

async function restoreTo(data: string, directory: string, withoutTokens = false): Promise<Restored> {
  const config = localConfig({ nodes: 3, partitions: 1, limit: 1, windowMillis: 1_000, basePort: 8_100 });
  const backup = await checkBackup(directory);
  return restoreCluster({
    backup,
    data,
    config,
    isComplete: false,
    withoutTokens,
    filled: writeKnownMembers,
  });
}

beforeAll(async () => {
  root = await temporaryDirectory();
  source = await PlayedSource.of(2);
});
afterAll(async () => rm(root, { recursive: true, force: true }));

describe('a backup', () => {
  it('has the state hash of the replicas for each group, and only its owner can read it', async () => {
    const directory = fresh();
    const { groups } = await take(directory);
    expect(groups.slice(1).map(({ stateHash }) => stateHash)).toEqual(
      source.partitions.map(({ machine }) => machine.hash()),
    );
    expect((await stat(directory)).mode & 0o777).toBe(0o700);
    for (const name of await readdir(directory))
      expect([name, (await stat(join(directory, name))).mode & 0o777]).toEqual([name, 0o600]);
  });

  it(`that is cut off at any chunk is none, and the next attempt is complete (BACKUP_SEED=${SEED})`, async () => {
    const random = seeded(SEED);
    const directory = fresh();
    let steps = 0;
    source.before = () => void (steps += 1);
    await take(fresh());
    for (let i = 0; i < 12; i += 1) {
      let left = random(steps);
      source.before = () => {
        left -= 1;
        // Not an error of the cluster: as if the process were killed.
        if (left < 0) throw new Cut();
      };
      await expect(take(directory)).rejects.toThrow(Cut);
      await expect(checkBackup(directory)).rejects.toMatchObject({ what: 'damaged' });
    }
    source.before = () => undefined;
    const manifest = await take(directory);
    expect((await checkBackup(directory)).manifest).toEqual(manifest);
    expect((await readdir(directory)).sort()).toEqual(
      [...manifest.groups.map(({ file }) => file), MANIFEST_FILE].sort(),
    );
  });

  it('requests a snapshot again if it was incomplete, and gives up after some attempts', async () => {
    let failures = 3;
    source.before = (_group, chunk) => {
      if (chunk !== undefined && (failures -= 1) >= 0)
        throw new BackupError('unreachable', 'the stream broke');
    };
    await take(fresh());
    failures = 1_000;
    await expect(take(fresh())).rejects.toMatchObject({ what: 'unreachable' });
    source.before = () => undefined;
  });

  it('has rules at least as new as those in force before, even if a former leader does not know them', async () => {
    const ahead: BackupSource = {
      rulesVersion: async () => 2,
      open: async (group) => source.open(group),
    };
    const directory = fresh();
    const never = takeBackup({ directory, source: ahead, print, againMillis: 1 });
    await expect(never).rejects.toMatchObject({
      what: 'unreachable',
      message: expect.stringMatching(/version 1/),
    });
    await expect(readManifest(directory)).rejects.toMatchObject({ what: 'damaged' });
  });

  it('refuses a directory that has other files', async () => {
    const directory = fresh();
    await mkdir(directory);
    await writeFile(join(directory, 'letter.txt'), 'dear');
    await expect(take(directory)).rejects.toMatchObject({ what: 'foreign' });
    expect(await readdir(directory)).toEqual(['letter.txt']);
  });
});

/** Whether node 1 of the directory knows that requests need a token. */
async function isClosed(data: string): Promise<boolean> {
  return hasTokens({}, await readKnownMembers(nodeDirectory(data, 1)));
}

describe('a restore', () => {
  it('finds every damage before it creates anything', async () => {
    const damages: ((directory: string) => Promise<void>)[] = [
      async (directory) => rm(join(directory, 'group-1.snapshot')),
      async (directory) => truncate(join(directory, 'group-2.snapshot'), 1_000),
      async (directory) => appendFile(join(directory, 'group-1.snapshot'), Buffer.alloc(5)),
      async (directory) => {
        const path = join(directory, 'group-1.snapshot');
        const bytes = await readFile(path);
        bytes[500] = (bytes[500] ?? 0) ^ 1;
        await writeFile(path, bytes);
      },
      async (directory) => {
        const path = join(directory, MANIFEST_FILE);
        const text = await readFile(path, 'utf8');
        // Replaces the first digit of the hash by another one.
        const damaged = text.replace(/("stateHash": ")(.)/, (_, start: string, first: string) =>
          first === '0' ? `${start}1` : `${start}0`,
        );
        await writeFile(path, damaged);
      },
    ];
    for (const damage of damages) {
      const [directory, data] = [fresh(), fresh()];
      await take(directory);
      await damage(directory);
      await expect(restoreTo(data, directory)).rejects.toMatchObject({ what: 'damaged' });
      expect(await readdir(root)).not.toContain(data);
    }
  });

  it('is refused for a backup of another format', () => {
    const text = JSON.stringify({ format: 2 });
    expect(() => parseManifest(text, 'm')).toThrow(/format 2; this version reads 1/);
  });

  it('that is cut off makes no cluster, and the next attempt starts over', async () => {
    const [directory, data] = [fresh(), fresh()];
    const { partitions } = await take(directory);
    // The remains of a first attempt: databases of another cluster, half filled, and the marker.
    await restoreTo(data, directory);
    await rm(join(data, 'cluster.json'));
    await writeFile(join(data, 'cluster.json.creating'), '');
    await rm(join(data, 'node-2', 'CURRENT'));
    expect(await readCluster(data)).toBeUndefined();
    const { config, groups } = await restoreTo(data, directory);
    expect(await readCluster(data)).toEqual(config);
    expect(groups).toHaveLength(partitions + 1);
    await expect(restoreTo(data, directory)).rejects.toThrow(/holds a cluster already/);
  });

  it('restores rules and tokens, or the rules only', async () => {
    const directory = fresh();
    await take(directory);
    const same = await restoreTo(fresh(), directory);
    expect(same.config.rules.rules).toEqual(source.partitions[0]?.machine.ruleTable?.rules);
    for (const { stateHash, backedUpHash } of same.groups) expect(stateHash).toBe(backedUpHash);
    const [meta] = (await restoreTo(fresh(), directory, true)).groups;
    expect(meta?.stateHash).not.toBe(meta?.backedUpHash);
  });

  it('knows before its first start whether requests need a token, so that it may listen to other machines', async () => {
    const directory = fresh();
    await take(directory);
    const [closed, open] = [fresh(), fresh()];
    await restoreTo(closed, directory);
    await restoreTo(open, directory, true);
    expect([await isClosed(closed), await isClosed(open)]).toEqual([true, false]);
  });
});
