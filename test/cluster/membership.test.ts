/** Tests replacing, adding and removing nodes of a real cluster under load. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { allowAt, freePorts, TestCluster, WAIT_MILLIS_MAX } from './harness.ts';
import { command, nodeAt, nodeOptions, quorate } from './nodes-command.ts';
import { findOverGrant, type ObservedGrant } from './over-grant.ts';

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

  beforeAll(async () => {
    cluster = await TestCluster.start({
      rules: [{ id: 'default', limit: LIMIT, windowMillis: WINDOW_MILLIS, clock: 'cluster' }],
      partitions: 8,
    });
    ports = await freePorts(2);
    client = ask();
  });
  afterAll(async () => {
    isAsking = false;
    await client;
    await cluster.stop();
  });

  it('replaces a lost machine by a new one and keeps deciding', async () => {
    const [http = 0, peer = 0] = ports;
    const four = nodeAt(4, http, peer);
    await cluster.kill(2);
    await quorate('join', '--data', cluster.directory, ...nodeOptions(four));
    cluster.startNode(4);
    const node = `http://127.0.0.1:${cluster.port(3)}`;
    const reported = await quorate('nodes', 'add', ...nodeOptions(four), '--replace', '2', '--node', node);
    expect(reported).toContain('done: all partitions have moved');
    // The other nodes learn of the change later than the node that was asked.
    await expect
      .poll(async () => (await cluster.status()).nodes.map(({ id }) => id), { timeout: WAIT_MILLIS_MAX })
      .toEqual([1, 3, 4]);
    askable = [1, 3, 4];
    const before = answered;
    await expect.poll(() => answered - before, { timeout: WAIT_MILLIS_MAX }).toBeGreaterThan(50);
  });

  it('refuses a change that would leave too few copies, and the id of a removed node', async () => {
    await expect(command(cluster.port(3), { remove: 3 })).rejects.toThrow(/fewer nodes would remain/);
    await expect(command(cluster.port(3), { add: nodeAt(2, 1, 2) })).rejects.toThrow(/take a new one/);
  });

  it('never granted more than the limit', () => {
    expect(grants.size).toBeGreaterThan(10);
    for (const seen of grants.values()) expect(findOverGrant(seen, LIMIT, WINDOW_MILLIS)).toBeUndefined();
  });
});
