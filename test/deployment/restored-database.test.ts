/** Tests that all founders make the same database from a backup, and that a database is complete or absent. */
import { appendFile, cp, mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CheckedBackup, checkBackup } from '../../src/backup/check-backup.ts';
import { restoreCluster } from '../../src/backup/restore-cluster.ts';
import { writeKnownMembers } from '../../src/node/member-cache.ts';
import { takeBackup } from '../../src/backup/take-backup.ts';
import { makeDatabase } from '../../src/cli/container-restore.ts';
import { localConfig, nodeDirectory } from '../../src/config/cluster-directory.ts';
import { factsOf } from '../../src/config/cluster-facts.ts';
import type { ClusterConfig } from '../../src/config/config.ts';
import { decodeMetaRecord } from '../../src/meta/meta-form.ts';
import { openStore } from '../../storage/open-store.ts';
import { PlayedSource } from '../backup/played-source.ts';
import { temporaryDirectory } from '../cluster/harness.ts';

const PARTITIONS = 2;
const config = localConfig({
  nodes: 3,
  partitions: PARTITIONS,
  limit: 1,
  windowMillis: 1_000,
  basePort: 8_100,
});

let root = '';
let backup: CheckedBackup;
let names = 0;
const fresh = (): string => join(root, `${(names += 1)}`);

beforeAll(async () => {
  root = await temporaryDirectory();
  const directory = fresh();
  const source = await PlayedSource.of(PARTITIONS);
  await takeBackup({ directory, source, print: () => undefined });
  backup = await checkBackup(directory);
});
afterAll(async () => rm(root, { recursive: true, force: true }));

/** Restores the database of a founder in a new volume. Resolves with its output. */
async function made(nodeId: number, volume: string, from = backup, own = config): Promise<string[]> {
  const said: string[] = [];
  const incarnation = own.founders[nodeId - 1]?.incarnation ?? '';
  await mkdir(volume, { recursive: true });
  const init = { nodeId, incarnation, config: own, backup: from };
  await makeDatabase(nodeDirectory(volume, nodeId), init, (line) => void said.push(line));
  return said;
}

interface Held {
  readonly stored: unknown;
  readonly chunks: readonly (Uint8Array | undefined)[];
}

/** All data of a founder, by group. */
async function heldIn(database: string, nodeId: number, facts = factsOf(config)): Promise<Held[]> {
  const store = await openStore(database, { nodeId, facts });
  try {
    const held: Held[] = [];
    for (let group = 0; group <= PARTITIONS; group += 1) {
      const stored = await store.load(group);
      const { index = 0, chunkCount = 0 } = stored?.snapshot ?? {};
      const chunks: (Uint8Array | undefined)[] = [];
      for (let chunk = 0; chunk < chunkCount; chunk += 1)
        chunks.push(await store.readSnapshotChunk(group, index, chunk));
      held.push({ stored, chunks });
    }
    return held;
  } finally {
    await store.close();
  }
}

/** Uses other ports, as if this founder had other addresses of the others. */
function elsewhere(nodes: ClusterConfig['nodes']): ClusterConfig['nodes'] {
  return nodes.map((node) => ({ ...node, http: { ...node.http, port: node.http.port + 10_000 } }));
}

describe('founders that restore a backup independently', () => {
  it('hold the same data, even with different addresses of the others', async () => {
    const held: Held[][] = [];
    for (const { id } of config.founders) {
      const volume = fresh();
      const own = id === 2 ? { ...config, nodes: elsewhere(config.nodes) } : config;
      await made(id, volume, backup, own);
      held.push(await heldIn(nodeDirectory(volume, id), id));
    }
    expect(held[1]).toEqual(held[0]);
    expect(held[2]).toEqual(held[0]);
    for (const { chunks } of held[0] ?? []) expect(chunks).not.toHaveLength(0);
    const record = decodeMetaRecord((held[0]?.[0]?.chunks ?? []) as Uint8Array[]);
    expect(record?.state.tokens).toEqual(backup.record.state.tokens);
    expect(record?.state.nodes).toEqual(config.founders);
  });

  it('hold for every partition the same data as `quorate restore`', async () => {
    const [volume, data] = [fresh(), fresh()];
    await made(1, volume);
    const init = { backup, data, config, isComplete: false, withoutTokens: false, filled: writeKnownMembers };
    const { config: restored } = await restoreCluster(init);
    const [, ...partitions] = await heldIn(nodeDirectory(volume, 1), 1);
    const [, ...expected] = await heldIn(nodeDirectory(data, 1), 1, factsOf(restored));
    expect(partitions).toEqual(expected);
  });
});

describe('the database of a founder', () => {
  it('is created again if an attempt was cut off, which left no database', async () => {
    const volume = fresh();
    const rest = join(volume, 'node-1.restoring-0badcafe');
    await mkdir(rest, { recursive: true });
    await writeFile(join(rest, 'CURRENT'), 'MANIFEST-000007\n');
    const said = await made(1, volume);
    expect(await readdir(volume)).toEqual(['node-1']);
    expect(said.filter((line) => /^group \d \(.*\): state [0-9a-f]+, as backed up$/.test(line))).toHaveLength(
      PARTITIONS + 1,
    );
    expect(said.at(-1)).toContain('all requests are denied for a full window');
  });

  it('never replaces an existing database', async () => {
    const volume = fresh();
    await made(1, volume);
    const before = await heldIn(nodeDirectory(volume, 1), 1);
    await expect(made(1, volume)).rejects.toMatchObject({ code: 'ENOTEMPTY' });
    expect(await heldIn(nodeDirectory(volume, 1), 1)).toEqual(before);
  });

  it('is not created if the backup changes meanwhile', async () => {
    const [directory, volume] = [fresh(), fresh()];
    await cp(backup.directory, directory, { recursive: true });
    const checked = await checkBackup(directory);
    await appendFile(join(directory, 'group-2.snapshot'), 'x');
    await expect(made(1, volume, checked)).rejects.toMatchObject({ what: 'damaged' });
    expect(await readdir(volume)).toEqual([expect.stringMatching(/^node-1\.restoring-/)]);
  });
});
