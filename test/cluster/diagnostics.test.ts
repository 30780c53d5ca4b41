/** Tests the heap snapshot and CPU profile of a running node: tools can read them, and the node keeps serving. */
import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { decidedAt, eventually, TestCluster } from './harness.ts';

const RULE = { id: 'default', limit: 100, windowMillis: 60_000, clock: 'request' } as const;

let cluster: TestCluster;
beforeAll(async () => {
  cluster = await TestCluster.start({ rules: [RULE], nodes: 1, partitions: 2 });
});
afterAll(async () => {
  await cluster.stop();
});

function urlOf(path: string): string {
  return `http://127.0.0.1:${cluster.port(1)}/v1/debug/${path}`;
}

async function post(path: string): Promise<Response> {
  return fetch(urlOf(path), { method: 'POST' });
}

function logged(msg: string): Record<string, unknown>[] {
  const text = readFileSync(join(cluster.directory, 'logs', 'node-1.log'), 'utf8');
  const lines = text.trim().split('\n');
  return lines
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .filter((line) => String(line['msg']).startsWith(msg));
}

it('a heap snapshot contains the state of the node, and the log has a line before it and a line with its cost after it', async () => {
  const user = 'who-is-in-memory';
  await decidedAt(cluster.port(1), { userId: user });
  const response = await post('heap-snapshot');
  const text = await response.text();
  expect(response.status).toBe(200);
  const { snapshot, strings } = JSON.parse(text) as { snapshot: { node_count: number }; strings: string[] };
  expect(snapshot.node_count).toBeGreaterThan(10_000);
  expect(strings.some((each) => each.includes(user))).toBe(true);
  expect(logged('taking a heap snapshot')).toHaveLength(1);
  const [after] = await eventually('the log says that the snapshot was sent', () => {
    const lines = logged('diagnosis sent');
    return lines.length > 0 ? lines : undefined;
  });
  expect(after).toMatchObject({ kind: 'heapSnapshot', bytes: Buffer.byteLength(text) });
  expect(after?.['millis']).toBeGreaterThan(0);
  expect(after?.['takenMillis']).toBeLessThanOrEqual(Number(after?.['millis']));
  expect(readFileSync(join(cluster.directory, 'logs', 'node-1.log'), 'utf8')).not.toContain(user);
  await decidedAt(cluster.port(1), { userId: user });
});

it('a CPU profile takes the requested seconds, no second profile may run, and the node decides meanwhile', async () => {
  const startedMillis = performance.now();
  const profiled = post('cpu-profile?seconds=3');
  await eventually('the profile is being taken', async () =>
    logged('taking a CPU profile')[0] ? true : undefined,
  );
  expect((await post('cpu-profile?seconds=1')).status).toBe(409);
  expect((await post('heap-snapshot')).status).toBe(409);
  await decidedAt(cluster.port(1), { userId: 'ada' });
  const response = await profiled;
  expect(response.status).toBe(200);
  const profile = (await response.json()) as {
    nodes: unknown[];
    samples: number[];
    endTime: number;
    startTime: number;
  };
  expect(performance.now() - startedMillis).toBeGreaterThan(3_000);
  expect(profile.nodes.length).toBeGreaterThan(10);
  expect(profile.samples.length).toBeGreaterThan(100);
  // In microseconds.
  expect(profile.endTime - profile.startTime).toBeGreaterThan(2_900_000);
});

it('a profile ends when its client disconnects, and another may be taken', async () => {
  const before = logged('taking a CPU profile').length;
  const left = request(urlOf('cpu-profile?seconds=60'), { method: 'POST' });
  left.on('error', () => {});
  left.end();
  await eventually('the profile is being taken', () =>
    logged('taking a CPU profile').length > before ? true : undefined,
  );
  left.destroy();
  await eventually('the profile is aborted', () => logged('diagnosis aborted')[0]);
  expect((await post('cpu-profile?seconds=1')).status).toBe(200);
});

it('a node that stops does not wait for a profile', async () => {
  const before = logged('taking a CPU profile').length;
  const asked = post('cpu-profile?seconds=60').then(
    ({ status }) => status,
    () => 'broken off',
  );
  await eventually('the profile is being taken', () =>
    logged('taking a CPU profile').length > before ? true : undefined,
  );
  cluster.signal(1, 'SIGTERM');
  expect(await cluster.exitOf(1)).toEqual({ code: 0, signal: null });
  expect([503, 'broken off']).toContain(await asked);
});
