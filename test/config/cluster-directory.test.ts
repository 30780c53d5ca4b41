/** Tests the directory of a local cluster: creation, reading and deletion. */
import { access, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  createCluster,
  deleteCluster,
  LOCAL_DEFAULTS,
  localConfig,
  nodeDirectory,
  readCluster,
  writeCluster,
} from '../../src/config/cluster-directory.ts';
import { factsOf } from '../../src/config/cluster-facts.ts';
import { ConfigError } from '../../src/config/config.ts';
import { openStore } from '../../storage/open-store.ts';

const CONFIG = localConfig({ ...LOCAL_DEFAULTS, nodes: 2 });
let directory: string;

beforeEach(async () => {
  directory = join(await mkdtemp(join(tmpdir(), 'quorate-directory-')), 'data');
});

afterEach(async () => {
  await rm(join(directory, '..'), { recursive: true, force: true });
});

async function names(): Promise<string[]> {
  return (await readdir(directory)).toSorted();
}

/** Leaves a file in a node's database directory, as a node does. */
async function leaveFile(node: number): Promise<string> {
  const path = join(nodeDirectory(directory, node), 'trace');
  await writeFile(path, 'votes');
  return path;
}

async function opens(node: number, clusterId = CONFIG.clusterId): Promise<boolean> {
  const facts = factsOf({ ...CONFIG, clusterId });
  const store = await openStore(nodeDirectory(directory, node), { nodeId: node, facts });
  await store.close();
  return true;
}

describe('a cluster directory', () => {
  it('holds the configuration and a database per node that belongs to it', async () => {
    await createCluster(directory, CONFIG);
    expect(await names()).toEqual(['cluster.json', 'node-1', 'node-2']);
    expect(await readCluster(directory)).toEqual(CONFIG);
    expect(await Promise.all([opens(1), opens(2)])).toEqual([true, true]);
    await expect(opens(1, 'another')).rejects.toThrow(/another|belongs/);
  });

  it('that does not exist holds no cluster', async () => {
    expect(await readCluster(directory)).toBeUndefined();
    await mkdir(directory);
    expect(await readCluster(directory)).toBeUndefined();
  });

  it('may exist and hold other files', async () => {
    await mkdir(directory);
    await writeFile(join(directory, 'notes.txt'), 'mine');
    await createCluster(directory, CONFIG);
    expect(await names()).toEqual(['cluster.json', 'node-1', 'node-2', 'notes.txt']);
  });

  it.each([
    ['no JSON', '{"clusterId":', 'is not JSON'],
    ['empty', '', 'is not JSON'],
    [
      'a key twice',
      '{"nodes":[{"id":1,"id":2}]}',
      'nodes[0].id must appear once, but appears more than once',
    ],
    ['no configuration', '{}', 'clusterId must be'],
  ])('whose cluster.json is damaged is refused: %s', async (_what, text, message) => {
    await createCluster(directory, CONFIG);
    await writeFile(join(directory, 'cluster.json'), text);
    await expect(readCluster(directory)).rejects.toThrow(ConfigError);
    await expect(readCluster(directory)).rejects.toThrow(message);
  });
});

describe('a changed configuration', () => {
  it('replaces the old one and leaves nothing else behind', async () => {
    await createCluster(directory, CONFIG);
    const changed = { ...CONFIG, timing: { ...CONFIG.timing, requestDeadlineMillis: 500 } };
    await writeCluster(directory, changed);
    expect(await readCluster(directory)).toEqual(changed);
    expect(await names()).toEqual(['cluster.json', 'node-1', 'node-2']);
  });

  it('that was cut off while it was written leaves the old one in force', async () => {
    await createCluster(directory, CONFIG);
    await writeFile(join(directory, 'cluster.json.new'), '{"clusterId"');
    expect(await readCluster(directory)).toEqual(CONFIG);
  });
});

describe('creating a cluster', () => {
  it('starts over when an earlier attempt was cut off', async () => {
    await mkdir(directory);
    await writeFile(join(directory, 'cluster.json.creating'), '');
    await createHalfDatabase(1);
    await createCluster(directory, CONFIG);
    expect(await names()).toEqual(['cluster.json', 'node-1', 'node-2']);
    expect(await opens(1)).toBe(true);
  });

  it('is refused over databases without a cluster.json, and changes nothing', async () => {
    await createCluster(directory, CONFIG);
    const trace = await leaveFile(1);
    await rm(join(directory, 'cluster.json'));
    const again = createCluster(directory, CONFIG);
    await expect(again).rejects.toThrow(ConfigError);
    await expect(again).rejects.toThrow('holds node-1, node-2 but no cluster.json; use another directory');
    expect(await readFile(trace, 'utf8')).toBe('votes');
    expect(await names()).toEqual(['node-1', 'node-2']);
  });

  it('is refused over a cluster', async () => {
    await createCluster(directory, CONFIG);
    const trace = await leaveFile(2);
    await expect(createCluster(directory, localConfig(LOCAL_DEFAULTS))).rejects.toThrow(ConfigError);
    expect(await readFile(trace, 'utf8')).toBe('votes');
    expect(await readCluster(directory)).toEqual(CONFIG);
  });

  it('is refused after a creation that was cut off after cluster.json was written: nodes have run since', async () => {
    await createCluster(directory, CONFIG);
    await writeFile(join(directory, 'cluster.json.creating'), '');
    // `readCluster` finds the cluster, so its nodes start and vote.
    expect(await readCluster(directory)).toEqual(CONFIG);
    const trace = await leaveFile(1);
    await createCluster(directory, localConfig(LOCAL_DEFAULTS)).catch(() => undefined);
    expect(await readFile(trace, 'utf8')).toBe('votes');
  });
});

/** The files of a creation that died in the middle of a database. */
async function createHalfDatabase(node: number): Promise<void> {
  await mkdir(nodeDirectory(directory, node));
  await writeFile(join(nodeDirectory(directory, node), 'CURRENT'), 'half');
}

describe('deleting a cluster', () => {
  it('removes the configuration, the databases and the logs, and nothing else', async () => {
    await createCluster(directory, CONFIG);
    await mkdir(join(directory, 'logs'));
    await writeFile(join(directory, 'logs', 'node-1.log'), 'line');
    await writeFile(join(directory, 'cluster.json.new'), '');
    const others = ['cluster.json.bak', 'node-1.txt', 'node-x', 'my-node-1', 'notes.txt'];
    for (const other of others) await writeFile(join(directory, other), 'mine');
    await deleteCluster(directory);
    expect(await names()).toEqual(others.toSorted());
    await createCluster(directory, CONFIG);
    expect(await opens(2)).toBe(true);
  });

  it('in a directory that does not exist does nothing', async () => {
    await deleteCluster(directory);
    await expect(access(directory)).rejects.toMatchObject({ code: 'ENOENT' });
  });

  it('also removes the files of a creation that was cut off', async () => {
    await mkdir(directory);
    await writeFile(join(directory, 'cluster.json.creating'), '');
    await createHalfDatabase(1);
    await deleteCluster(directory);
    expect(await names()).toEqual([]);
  });

  it('does not change a directory without a cluster', async () => {
    await mkdir(join(directory, 'logs'), { recursive: true });
    await writeFile(join(directory, 'logs', 'access.log'), 'mine');
    await mkdir(join(directory, 'node-20'));
    await deleteCluster(directory);
    expect(await names()).toEqual(['logs', 'node-20']);
  });
});
