/** Tests that `quorate recover` states its cost first, marks the cluster as recovered, and can be repeated. */
import { readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { takeBackup } from '../../src/backup/take-backup.ts';
import { clusterSource } from '../../src/cli/cluster-source.ts';
import { recover } from '../../src/cli/recover-command.ts';
import { nodeDirectory } from '../../src/config/cluster-directory.ts';
import { reportFrom } from '../../cluster/processes.ts';
import { NO_NODE } from '../../raft/types.ts';
import { eventually, WAIT_MILLIS_MAX } from '../cluster/harness.ts';
import { InProcessCluster } from '../cluster/in-process.ts';
import { inTime } from './command.ts';

describe('quorate recover', () => {
  let cluster: InProcessCluster;
  const said: string[] = [];
  const run = async (more: Partial<Parameters<typeof recover>[0]>): Promise<void> =>
    inTime(() => recover({ data: cluster.directory, id: 1, print: (line) => said.push(line), ...more }));

  beforeAll(async () => {
    const rule = { id: 'default', limit: 2, windowMillis: 1_000, clock: 'cluster' } as const;
    cluster = await InProcessCluster.create({ rules: [rule], partitions: 2 });
    // The same as after `quorate init`, with the ports of the test.
    await cluster.startAll();
    // A backup leaves a snapshot on the disks of the leaders, followed by the log.
    const source = clusterSource(`http://127.0.0.1:${cluster.config.nodes[0]?.http.port}`, undefined);
    await takeBackup({ directory: join(cluster.directory, 'backup'), source, print: () => undefined });
  });
  afterAll(async () => {
    await cluster.stop();
    await rm(cluster.directory, { recursive: true, force: true });
  });

  it('does nothing without options that accept exceeded limits and name the groups', async () => {
    await expect(run({ all: true })).rejects.toThrow(/limits are exceeded.*--i-accept-over-grants/);
    await expect(run({ iAcceptOverGrants: true })).rejects.toThrow(/--group or --all/);
    await expect(run({ iAcceptOverGrants: true, all: true, group: 1 })).rejects.toThrow(/not both/);
  });

  it('does nothing while there is a leader, or while the node runs', async () => {
    const node = `http://127.0.0.1:${cluster.config.nodes[1]?.http.port}`;
    const knowsLeaders = async (): Promise<boolean> => {
      const report = await reportFrom(node);
      return report?.partitions.every(({ leader }) => leader !== NO_NODE) === true;
    };
    // The node may not know the leader yet, or there is none for a moment.
    const refusal = await eventually('node 2 knows all leaders during the command', async () => {
      if (!(await knowsLeaders())) return undefined;
      const reported: unknown = await run({ iAcceptOverGrants: true, all: true, node }).then(
        () => 'done',
        (error: unknown) => error,
      );
      // If all partitions had lost their leaders and elected new ones meanwhile, only the locked database stopped the
      // command.
      const isLocked = reported instanceof Error && 'code' in reported && reported.code === 'STORE_LOCKED';
      return !isLocked && (await knowsLeaders()) ? reported : undefined;
    });
    expect(refusal).toMatchObject({ message: expect.stringMatching(/has its quorum/) as string });
    // cluster.json names the other nodes, so the result is the same with and without a named node.
    const knowsOne = { message: expect.stringMatching(/has its quorum/) as string };
    const unnamed = async (): Promise<unknown> =>
      run({ iAcceptOverGrants: true, all: true }).catch((error: unknown) => error);
    await expect.poll(unnamed, { timeout: WAIT_MILLIS_MAX }).toMatchObject(knowsOne);
    for (const id of [3, 2]) await cluster.stopNode(id);
    await expect(run({ iAcceptOverGrants: true, all: true })).rejects.toMatchObject({ code: 'STORE_LOCKED' });
  });

  it('does nothing while the asked node does not report the leaders', async () => {
    await cluster.stopNode(1);
    const node = `http://127.0.0.1:${cluster.config.nodes[1]?.http.port}`;
    await expect(run({ iAcceptOverGrants: true, all: true, node })).rejects.toMatchObject({
      outcome: 'unreachable',
      message: expect.stringContaining('does not report the leaders (ECONNREFUSED)'),
    });
    const stranger = createServer((_, response) => response.writeHead(401).end('{}'));
    await new Promise<void>((resolve) => stranger.listen(0, '127.0.0.1', resolve));
    const { port } = stranger.address() as AddressInfo;
    const asked = run({ iAcceptOverGrants: true, all: true, node: `http://127.0.0.1:${port}` });
    await expect(asked).rejects.toMatchObject({ outcome: 'refused' });
    stranger.close();
    expect(said).toEqual([]);
  });

  it('recovers the groups of the survivor, and marks its directory, also when repeated', async () => {
    await run({ iAcceptOverGrants: true, all: true });
    await run({ iAcceptOverGrants: true, group: 1, json: true });
    const reported = JSON.parse(said.at(-1) ?? '') as { recovered: { votersBefore: number[] }[] };
    expect(reported.recovered.map(({ votersBefore }) => votersBefore)).toEqual([[1]]);
    expect(said.filter((line) => /^group \d: node 1 alone, of 1, 2, 3/.test(line))).toHaveLength(3);
    const lines = await readFile(join(nodeDirectory(cluster.directory, 1), 'RECOVERED'), 'utf8');
    expect(lines.match(/"group":\d/g)).toEqual(['"group":0', '"group":1', '"group":2', '"group":1']);
    await cluster.startNode(1);
    await cluster.ready();
  });
});
