/** Tests a flood of new users at nodes with a small heap, which can store few users. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type AllowQuestion, type AllowResult, eventually, TestCluster } from './harness.ts';

const HEAP_MEGABYTES = 90;
const STATE_BYTES_MAX = 160 << 10;
const KNOWN = 100;
const known = Array.from({ length: KNOWN }, (_, i) => `known-${i}`);
const CLIENTS = 32;

const LONG = { id: 'long', limit: 1_000, windowMillis: 3_600_000, clock: 'cluster' } as const;
/** A window that is longer than the flood takes, even on a busy machine, so that no user is forgotten meanwhile. */
const FLOODED = { id: 'flooded', limit: 10, windowMillis: 3_600_000, clock: 'cluster' } as const;
const SHORT_MILLIS = 6_000;

/**
 * Sends requests of new users to all nodes until some are refused for lack of memory. Returns all answers other than
 * grants.
 */
async function flood(cluster: TestCluster, refusalsWanted: number): Promise<AllowResult[]> {
  const others: AllowResult[] = [];
  let refusals = 0;
  let next = 0;
  const client = async (): Promise<void> => {
    while (refusals < refusalsWanted) {
      next += 1;
      const result = await cluster.allow((next % 3) + 1, { userId: `flood-${next}`, rule: FLOODED.id });
      if (result.status !== 200) others.push(result);
      if (result.body.reason === 'at_capacity') refusals += 1;
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, client));
  return others;
}

/**
 * Repeats the request while the machine is too busy to decide. A refusal for lack of room is returned: known users must
 * never get one.
 */
async function decided(cluster: TestCluster, node: number, question: AllowQuestion): Promise<AllowResult> {
  return eventually('a decision', async () => {
    const result = await cluster.allow(node, question);
    return result.status === 503 && result.body.reason !== 'at_capacity' ? undefined : result;
  });
}

async function metric(cluster: TestCluster, node: number, name: string): Promise<number> {
  const response = await fetch(`http://127.0.0.1:${cluster.port(node)}/metrics`);
  const line = (await response.text()).split('\n').find((each) => each.startsWith(`${name} `));
  return Number(line?.split(' ')[1]);
}

describe('a flood of new users at nodes with a 90 MB heap', () => {
  let cluster: TestCluster;
  const exits: unknown[] = [];
  const first = { userId: 'known-0', requestId: 'first' };
  let granted: AllowResult;

  beforeAll(async () => {
    cluster = await TestCluster.create({
      rules: [LONG, FLOODED],
      partitions: 4,
      stateBytesMax: STATE_BYTES_MAX,
      // A busy machine may take long for the flood.
      requestIdHorizonMillis: LONG.windowMillis,
    });
    for (const id of cluster.ids) {
      const node = cluster.startNode(id, ([command = '', ...args]) => [
        command,
        `--max-old-space-size=${HEAP_MEGABYTES}`,
        ...args,
      ]);
      void node.exited.then((exit) => exits.push({ id, ...exit }));
    }
    await cluster.ready();
    granted = await decided(cluster, 1, first);
    await Promise.all(known.map((userId) => decided(cluster, 2, { userId })));
  });
  afterAll(async () => {
    await cluster.stop();
  });

  it('is refused before the memory is full, and no node crashes', async () => {
    const others = await flood(cluster, 500);
    for (const other of others) expect(other).toMatchObject({ status: 503, body: { allowed: false } });
    expect(exits).toEqual([]);
    for (const id of cluster.ids) {
      // Requests that were under way when the bound was reached may exceed it.
      expect(await metric(cluster, id, 'quorate_state_bytes')).toBeLessThan(STATE_BYTES_MAX * 1.25);
    }
    const refused = await Promise.all(
      cluster.ids.map((id) => metric(cluster, id, 'quorate_refused_at_capacity_total')),
    );
    expect(Math.max(...refused)).toBeGreaterThan(100);
  });

  it('does not affect known users and retries', async () => {
    const answers = await Promise.all(known.map((userId, i) => decided(cluster, (i % 3) + 1, { userId })));
    expect(answers.map(({ status }) => status)).toEqual(known.map(() => 200));
    const retried = await decided(cluster, 3, first);
    expect(retried.body).toEqual(granted.body);
    expect(exits).toEqual([]);
  });

  it('ends when its users are forgotten: then new users are granted again', async () => {
    let later = 0;
    const askLater = async (): Promise<AllowResult> => {
      later += 1;
      return cluster.allow(1, { userId: `later-${later}`, rule: FLOODED.id });
    };
    await eventually('a new user is refused', async () =>
      (await askLater()).body.reason === 'at_capacity' ? true : undefined,
    );
    await eventually('a shorter window everywhere', async () => {
      const { status } = await fetch(`http://127.0.0.1:${cluster.port(1)}/v1/rules`, {
        method: 'PUT',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ rules: [LONG, { ...FLOODED, windowMillis: SHORT_MILLIS }] }),
      });
      return status === 200 ? true : undefined;
    });
    await eventually('room for a new user', async () =>
      (await askLater()).status === 200 ? true : undefined,
    );
    expect(exits).toEqual([]);
  });
});
