/**
 * Tests that preparing a joining node can be repeated after a crash at any step, and never makes a second database for
 * one id.
 */
import { execFile } from 'node:child_process';
import { cp, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  createCluster,
  LOCAL_DEFAULTS,
  localAddress,
  localConfig,
  nodeDirectory,
  readCluster,
} from '../../src/config/cluster-directory.ts';
import { factsOf } from '../../src/config/cluster-facts.ts';
import { joinCluster } from '../../src/cli/join-cluster.ts';
import { MemberCache } from '../../src/node/member-cache.ts';
import { openStore } from '../../storage/open-store.ts';
import { WAIT_MILLIS_MAX } from '../cluster/harness.ts';
import { ROUNDS } from '../raft/seeded.ts';

const CONFIG = localConfig({ ...LOCAL_DEFAULTS, nodes: 2 });
const FOUR = localAddress(4, 8_100);
const INJECTED = join(import.meta.dirname, '../../dist/test/config/injected');
const DIE_AT = pathToFileURL(join(INJECTED, 'die-at.js')).href;
const run = promisify(execFile);
/** `npm test` crashes at every third step; the long run crashes at each. */
const STRIDE = ROUNDS === 1 ? 3 : 1;
let directory: string;

beforeEach(async () => {
  directory = join(await mkdtemp(join(tmpdir(), 'quorate-join-')), 'data');
  await createCluster(directory, CONFIG);
});

afterEach(async () => {
  await rm(join(directory, '..'), { recursive: true, force: true });
});

async function incarnation(node: number, config = CONFIG): Promise<string> {
  const store = await openStore(nodeDirectory(directory, node), { nodeId: node, facts: factsOf(config) });
  await store.close();
  return store.identity.incarnation;
}

/** Joins, and crashes at the given file change. Returns true if the join ended before that. */
async function killedAt(step: number): Promise<boolean> {
  const args = ['--import', DIE_AT, join(INJECTED, 'join-child.js'), directory, JSON.stringify(FOUR)];
  const env = { ...process.env, QUORATE_TEST_DIE_AT: String(step) };
  try {
    await run(process.execPath, args, { env });
    return true;
  } catch (error) {
    if (error instanceof Error && 'signal' in error && error.signal === 'SIGKILL') return false;
    throw error;
  }
}

describe('a join', () => {
  it('makes a database with an incarnation of its own, and lists the node', async () => {
    expect(await joinCluster(directory, FOUR)).toEqual([expect.stringContaining('node 4 is prepared')]);
    const { nodes, founders } = (await readCluster(directory)) ?? {};
    expect(nodes).toEqual([...CONFIG.nodes, FOUR]);
    expect(founders).toEqual(CONFIG.founders);
    const others = CONFIG.founders.map((founder) => founder.incarnation);
    expect(others).not.toContain(await incarnation(4));
  });

  it('that is repeated changes nothing, and says so', async () => {
    await joinCluster(directory, FOUR);
    const before = await incarnation(4);
    expect(await joinCluster(directory, FOUR)).toEqual(['node 4 is prepared already']);
    expect(await incarnation(4)).toBe(before);
    const elsewhere = { ...FOUR, http: { host: '127.0.0.1', port: 9 } };
    await expect(joinCluster(directory, elsewhere)).rejects.toThrow(
      /prepared already, at 127.0.0.1:8104 and/,
    );
  });

  it('is refused for a node whose database is gone: the node would forget its acknowledged entries', async () => {
    await joinCluster(directory, FOUR);
    await rm(nodeDirectory(directory, 4), { recursive: true });
    await expect(joinCluster(directory, FOUR)).rejects.toThrow(/its database is gone; take a new one/);
    await rm(nodeDirectory(directory, 1), { recursive: true });
    await expect(joinCluster(directory, localAddress(1, 8_100))).rejects.toThrow(
      /created with; take a new one/,
    );
    expect((await readdir(directory)).toSorted()).toEqual(['cluster.json', 'node-2']);
  });

  it('adopts a database of this node and cluster that the file does not list, and no other database', async () => {
    await joinCluster(directory, FOUR);
    const before = await incarnation(4);
    await writeFile(join(directory, 'cluster.json'), JSON.stringify(CONFIG));
    await joinCluster(directory, FOUR);
    expect(await incarnation(4)).toBe(before);
    await writeFile(join(directory, 'cluster.json'), JSON.stringify({ ...CONFIG, partitions: 7 }));
    await expect(joinCluster(directory, FOUR)).rejects.toMatchObject({ code: 'STORE_FOREIGN' });
  });

  it('at the address of a lost node replaces it in the file', async () => {
    await rm(nodeDirectory(directory, 2), { recursive: true });
    const [two] = CONFIG.nodes.slice(1);
    const reported = await joinCluster(directory, { id: 4, http: FOUR.http, peer: two?.peer ?? FOUR.peer });
    expect(reported[0]).toContain('node 2 was at that address');
    expect((await readCluster(directory))?.nodes.map(({ id }) => id)).toEqual([1, 4]);
  });

  it('at the address of a node with a database here is refused, unless that node was removed', async () => {
    const five = { ...localAddress(2, 8_100), id: 5 };
    await expect(joinCluster(directory, five)).rejects.toThrow(
      /belongs to node 2, which lives in this directory/,
    );
    expect((await readdir(directory)).toSorted()).toEqual(['cluster.json', 'node-1', 'node-2']);
    new MemberCache(nodeDirectory(directory, 2), (error) => expect(error).toBeUndefined()).removed();
    await expect
      .poll(async () => joinCluster(directory, five).catch(() => undefined), { timeout: WAIT_MILLIS_MAX })
      .toBeDefined();
    expect((await readCluster(directory))?.nodes.map(({ id }) => id)).toEqual([1, 5]);
  });
});

describe('a join that was killed', () => {
  it('can be repeated, after a crash at any step', async () => {
    const fresh = `${directory}-fresh`;
    await cp(directory, fresh, { recursive: true });
    let isDone = false;
    let steps = Math.floor(Math.random() * STRIDE);
    // Each attempt starts afresh and crashes a little later.
    for (; !isDone; steps += STRIDE) {
      await rm(directory, { recursive: true });
      await cp(fresh, directory, { recursive: true });
      isDone = await killedAt(steps + 1);
      await joinCluster(directory, FOUR);
      expect((await readCluster(directory))?.nodes).toEqual([...CONFIG.nodes, FOUR]);
      expect(await incarnation(4)).toMatch(/^[0-9a-f]{32}$/);
      expect(JSON.parse(await readFile(join(directory, 'cluster.json'), 'utf8'))).toMatchObject({
        founders: CONFIG.founders,
      });
    }
    expect(steps).toBeGreaterThan(10);
  });
});
