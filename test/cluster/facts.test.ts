/** Tests that settings fixed at the creation of a cluster stay, even if somebody edits the file later. */
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startNodeProcess } from '../../cluster/processes.ts';
import { explain } from '../../src/cli/explain-error.ts';
import { createCluster, nodeDirectory, readCluster } from '../../src/config/cluster-directory.ts';
import type { ClusterConfig } from '../../src/config/config.ts';
import { startNode } from '../../src/node/node.ts';
import { temporaryDirectory, testConfig, WAIT_MILLIS_MAX } from './harness.ts';

const RULE = { id: 'default', limit: 1, windowMillis: 60_000, clock: 'cluster' } as const;

describe('a restart', () => {
  let directory: string;
  let config: ClusterConfig;
  beforeAll(async () => {
    config = await testConfig({ rules: [RULE], partitions: 4, nodes: 5 });
    directory = await temporaryDirectory();
    await createCluster(directory, config);
  });
  afterAll(async () => rm(directory, { recursive: true }));

  /** Edits the file. */
  async function edit(edited: (config: ClusterConfig) => object): Promise<void> {
    await writeFile(join(directory, 'cluster.json'), JSON.stringify({ ...config, ...edited(config) }));
  }

  /** The message with which node 1 refuses to start, in this process. */
  async function refusal(): Promise<ReturnType<typeof explain>> {
    try {
      const edited = await readCluster(directory);
      if (edited === undefined) throw new Error('there is no cluster');
      const node = await startNode({
        config: edited,
        nodeId: 1,
        dataDirectory: nodeDirectory(directory, 1),
        logger: pino({ level: 'silent' }),
        onFatal: () => {},
      });
      await node.abort();
    } catch (error) {
      return explain(error);
    }
    throw new Error('it started');
  }

  it.each<[what: string, edited: (config: ClusterConfig) => object, sentence: RegExp]>([
    [
      'with another number of partitions',
      () => ({ partitions: 7 }),
      /created with partitions 4, but this node is configured with 7: this never changes/,
    ],
    [
      'with another number of replicas',
      () => ({ replicas: 1 }),
      /created with replicas 3, but this node is configured with 1/,
    ],
    [
      'with fewer founders',
      ({ founders }) => ({ founders: founders.slice(0, 4) }),
      /created with founders 1 \(.*5 \(\w+\), but this node is configured with 1 \(.*4 \(\w+\): /,
    ],
    [
      'with a founder that joined later',
      ({ founders }) => ({ founders: [...founders, { id: 6, incarnation: '6'.repeat(32) }] }),
      /but this node is configured with .*, 6 \(6{32}\)/,
    ],
    [
      'with another incarnation of a founder',
      ({ founders }) => ({
        founders: founders.map((one) => (one.id === 2 ? { ...one, incarnation: 'f'.repeat(32) } : one)),
      }),
      /but this node is configured with .*, 2 \(f{32}\)/,
    ],
    [
      'of another cluster',
      () => ({ clusterId: 'another' }),
      /created with clusterId .*configured with another/,
    ],
  ])('%s is refused in one sentence', async (_what, edited, sentence) => {
    await edit(edited);
    expect(await refusal()).toEqual({ message: expect.stringMatching(sentence) as string, exitCode: 64 });
  });

  it('that is refused ends the process and prints only the refusal', async () => {
    await edit(() => ({ clusterId: 'another' }));
    const log = join(directory, 'logs', 'node-1.log');
    await rm(log, { force: true });
    const { code } = await startNodeProcess(directory, 1).exited;
    const lines = (await readFile(log, 'utf8')).trim().split('\n');
    // Its log also has the earlier line that a cluster on loopback is open.
    const [said = '', ...more] = lines.filter((line) => !line.startsWith('{'));
    expect({ code, more }).toEqual({ code: 64, more: [] });
    expect(said).toMatch(/^quorate: .*created with clusterId .*configured with another/);
  });

  it('with the correct file in another order works afterwards', async () => {
    const { founders, nodes } = config;
    const shuffled = { ...config, founders: founders.toReversed(), nodes: nodes.toReversed().slice(1) };
    await writeFile(join(directory, 'cluster.json'), JSON.stringify(shuffled));
    const node = startNodeProcess(directory, 1);
    const log = join(directory, 'logs', 'node-1.log');
    await expect
      .poll(async () => readFile(log, 'utf8'), { timeout: WAIT_MILLIS_MAX })
      .toContain('node is up');
    node.child.kill('SIGKILL');
    await node.exited;
  });
});
