/** Nodes of a real cluster are replaced, added and removed while clients go on asking. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { allowAt, freePorts, TestCluster } from './harness.ts';
import { findOverGrant, type ObservedGrant } from './over-grant.ts';

const CLI = join(import.meta.dirname, '../../dist/src/cli.js');
const run = promisify(execFile);
const LIMIT = 5;
const WINDOW_MILLIS = 2_000;

describe('a running cluster', () => {
  let cluster: TestCluster;
  let ports: number[];
  const grants = new Map<string, ObservedGrant[]>();
  let isAsking = true;
  let answered = 0;
  let client: Promise<void> | undefined;
  let askable = [1, 3];

  async function ask(): Promise<void> {
    for (let i = 0; isAsking; i += 1) {
      const id = askable[i % askable.length] ?? 1;
      const port = id === 4 ? (ports[0] ?? 0) : cluster.port(id);
      const userId = `u${i % 40}`;
      const result = await allowAt(port, { userId, requestId: `r${i}` }).catch(() => undefined);
      if (result === undefined || result.status === 503) continue;
      answered += 1;
      if (result.status === 200) grants.set(userId, [...(grants.get(userId) ?? []), result]);
    }
  }

  async function command(...args: string[]): Promise<string> {
    const via = ['--via', `http://127.0.0.1:${cluster.port(3)}`];
    const { stdout } = await run(process.execPath, [CLI, 'nodes', ...args, ...via, '--timeout', '30000']);
    return stdout;
  }

  beforeAll(async () => {
    cluster = await TestCluster.start({
      rules: [{ id: 'default', limit: LIMIT, windowMillis: WINDOW_MILLIS, clock: 'cluster' }],
      partitions: 8,
    });
    ports = await freePorts(2);
    client = ask();
  }, 30_000);
  afterAll(async () => {
    isAsking = false;
    await client;
    await cluster.stop();
  });

  it('replaces a machine that is lost by a new one, and goes on without it', async () => {
    const addresses = ['--http', `127.0.0.1:${ports[0]}`, '--peer', `127.0.0.1:${ports[1]}`];
    await cluster.kill(2);
    await run(process.execPath, [CLI, 'join', '--data', cluster.directory, '--id', '4', ...addresses]);
    cluster.startNode(4);
    const told = await command('add', '--id', '4', ...addresses, '--replace', '2');
    expect(told).toContain('done: all partitions have moved');
    const status = await cluster.status();
    expect(status.nodes.map(({ id }) => id)).toEqual([1, 3, 4]);
    askable = [1, 3, 4];
    const before = answered;
    await expect.poll(() => answered - before, { timeout: 10_000 }).toBeGreaterThan(50);
  }, 60_000);

  it('refuses what would leave too few copies, and an id that left', async () => {
    await expect(command('remove', '3')).rejects.toThrow(/fewer nodes would remain/);
    const addresses = ['--http', '127.0.0.1:1', '--peer', '127.0.0.1:2'];
    await expect(command('add', '--id', '2', ...addresses)).rejects.toThrow(/take a new one/);
  }, 30_000);

  it('never granted one too many', () => {
    expect(grants.size).toBeGreaterThan(10);
    for (const seen of grants.values()) expect(findOverGrant(seen, LIMIT, WINDOW_MILLIS)).toBeUndefined();
  });
});
