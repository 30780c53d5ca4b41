/**
 * Tests that a node id belongs to one database for good: all nodes refuse another database with the same id, and it
 * learns so.
 */
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type NodeProcess, startNodeProcess } from '../../cluster/processes.ts';
import { joinCluster } from '../../src/cli/join-cluster.ts';
import { reportFrom } from '../../cluster/processes.ts';
import type { ReportedSelf } from '../../src/api/cluster-report.ts';
import type { NodeAddress } from '../../src/api/node-address.ts';
import { allowAt, decidedAt, eventually, freePorts, TestCluster } from './harness.ts';
import { IS_LONG } from '../raft/seeded.ts';
import { command, nodeAt } from './nodes-command.ts';

const LIMIT = 5;
const RULE = { id: 'default', limit: LIMIT, windowMillis: 3_600_000, clock: 'cluster' } as const;

/** The status of the node at this port. */
async function self(port: number): Promise<ReportedSelf | undefined> {
  return (await reportFrom(`http://127.0.0.1:${port}`))?.self;
}

async function grantsOfAda(ports: readonly number[], attempts: number): Promise<number> {
  let grants = 0;
  for (let i = 0; i < attempts; i += 1) {
    for (const port of ports) {
      const answer = await allowAt(port, { userId: 'ada' }).catch(() => undefined);
      if (answer?.status === 200) grants += 1;
    }
  }
  return grants;
}

async function expectRefused(port: number): Promise<ReportedSelf> {
  const reported = await eventually('the node knows that it is refused', async () => {
    const said = await self(port);
    return said?.membership === 'refused' ? said : undefined;
  });
  const ready = await fetch(`http://127.0.0.1:${port}/readyz`);
  expect(ready.status).toBe(503);
  expect(await ready.json()).toMatchObject({ status: 'refused', reason: reported.reason });
  return reported;
}

describe('a node that joined', () => {
  let cluster: TestCluster;
  let four: NodeAddress;
  /** Each node has its own directory with a copy of cluster.json from the creation of the cluster. */
  const machines: string[] = [];
  const processes: NodeProcess[] = [];
  beforeEach(async () => {
    cluster = await TestCluster.start({ rules: [RULE], partitions: 1 });
    const [http = 0, peer = 0] = await freePorts(2);
    four = nodeAt(4, http, peer);
  });
  afterEach(async () => {
    for (const { child, exited } of processes.splice(0)) {
      child.kill('SIGKILL');
      await exited;
    }
    await cluster.stop();
    for (const machine of machines.splice(0)) await rm(machine, { recursive: true, force: true });
  });

  async function machine(name: string): Promise<string> {
    const directory = `${cluster.directory}-${name}`;
    machines.push(directory);
    await rm(directory, { recursive: true, force: true });
    await mkdir(directory);
    await writeFile(
      join(directory, 'cluster.json'),
      await readFile(join(cluster.directory, 'cluster.json'), 'utf8'),
    );
    return directory;
  }

  async function run(directory: string, address = four): Promise<NodeProcess> {
    await joinCluster(directory, address);
    const node = startNodeProcess(directory, address.id);
    processes.push(node);
    return node;
  }

  it.runIf(IS_LONG)(
    'does not grant the budget again after its disk was lost and the node was prepared again',
    async () => {
      const disk = await machine('4');
      const first = await run(disk);
      await command(cluster.port(1), { add: four, remove: 3 });
      await cluster.kill(3);
      // Node 2 is down while nodes 1 and 4 grant the whole limit.
      await cluster.kill(2);
      const ada = await grantsOfAda([cluster.port(1), four.http.port], 6);
      expect(ada).toBe(LIMIT);
      first.child.kill('SIGKILL');
      await first.exited;
      await cluster.kill(1);
      // Node 4 has lost its database and its file. Node 1 is down. Node 2 is back and does not know the grants.
      await run(await machine('4'));
      cluster.startNode(2);
      const { reason } = await expectRefused(four.http.port);
      expect(reason).toContain('another database is recorded under node id 4');
      expect(await grantsOfAda([cluster.port(2), four.http.port], 6)).toBe(0);
      cluster.startNode(1);
      await eventually('nodes 1 and 2 decide', async () => {
        const answer = await allowAt(cluster.port(2), { userId: 'bob' });
        return answer.status === 200 ? true : undefined;
      });
      expect(await grantsOfAda([cluster.port(1), cluster.port(2), four.http.port], 3)).toBe(0);
    },
  );

  it('is refused if another machine has its id, and says so', async () => {
    await run(await machine('4'));
    await command(cluster.port(1), { add: four });
    const [http = 0, peer = 0] = await freePorts(2);
    await run(await machine('twin'), nodeAt(4, http, peer));
    await expectRefused(http);
    expect(await grantsOfAda([http], 2)).toBe(0);
    const answer = await allowAt(http, { userId: 'ada' });
    expect(answer).toMatchObject({ status: 503, body: { reason: 'not_member', proposed: false } });
    // The first node 4 is not disturbed.
    const first = await eventually('node 4 answers', async () => self(four.http.port));
    expect(first).toMatchObject({ id: 4, membership: 'member' });
    const statuses: number[] = [];
    for (let i = 0; i <= LIMIT; i += 1)
      statuses.push((await decidedAt(four.http.port, { userId: 'ada' })).status);
    expect(statuses).toEqual([...Array<number>(LIMIT).fill(200), 429]);
  });
});
