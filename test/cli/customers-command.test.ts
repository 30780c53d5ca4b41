/** Tests `quorate customers`, which shows and changes a customer at a running node. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { InProcessCluster } from '../cluster/in-process.ts';
import { eventually } from '../cluster/harness.ts';
import { decided, ended, type Ended, ran } from './command.ts';

const BEFORE = { id: 'default', limit: 5, windowMillis: 600_000, clock: 'cluster' } as const;
const DOCUMENT = 'rules: [{ id: mine, key: customer, meter: tokenBucket, windows: { limit: 5, per: hour } }]';

let cluster: InProcessCluster;
let node: string;

beforeAll(async () => {
  cluster = await InProcessCluster.create({
    rules: [BEFORE],
    partitions: 1,
    nodes: 1,
    timing: { requestDeadlineMillis: 10_000 },
  });
  await cluster.startAll();
  node = `127.0.0.1:${cluster.config.nodes[0]?.http.port}`;
  await putRules(DOCUMENT);
});
afterAll(() => cluster.stop());

async function putRules(document: string): Promise<void> {
  await eventually('the document is in force', async () => {
    const headers = { 'content-type': 'application/yaml' };
    const { status } = await fetch(`http://${node}/v1/rules`, { method: 'PUT', headers, body: document });
    return status === 200 ? true : undefined;
  });
}

async function customers(...args: readonly string[]): Promise<Ended> {
  return decided(() => ran(['customers', ...args, '--node', node], cluster.directory));
}

it('shows the record of a customer, changes the named fields, and deletes the record', async () => {
  expect(await customers('get', 'acme')).toMatchObject({
    code: 64,
    said: expect.stringMatching(/there is no record of this customer/),
  });
  const put = await customers('put', 'acme', '--tier', 'pro', '--override', 'mine/hour=500:1000');
  expect(put).toMatchObject({ code: 0 });
  expect((await customers('put', 'acme', '--block')).code).toBe(0);
  expect(JSON.parse((await customers('get', 'acme')).stdout)).toMatchObject({
    customer: 'acme',
    tier: 'pro',
    overrides: [{ rule: 'mine/hour', limit: 500, burst: 1000 }],
    blocked: true,
  });
  const ending = await customers('put', 'acme', '--duration', '600000');
  expect(JSON.parse(ending.stdout)).toMatchObject({ tier: 'pro', blocked: true });
  expect(JSON.parse((await customers('get', 'acme')).stdout)).toHaveProperty('blockedUntilMillis');
  expect((await customers('put', 'acme', '--unblock', '--duration', '1')).code).toBe(64);
  expect((await customers('put', 'acme', '--tier', '', '--no-overrides', '--unblock')).code).toBe(0);
  expect((await customers('get', 'acme')).code).toBe(64);
  const removal = ['customers', 'delete', 'acme', '--node', node];
  expect((await decided(() => ended('quorate', removal, cluster.directory))).code).toBe(0);
});

it('names the mistake in a command, and changes nothing', async () => {
  expect(await customers('put', 'acme', '--override', 'other=5')).toMatchObject({
    code: 64,
    said: expect.stringMatching(/overrides\[0\]\.rule/),
  });
  expect(await customers('put', 'acme', '--override', 'mine=5')).toMatchObject({
    code: 64,
    said: expect.stringMatching(
      /overrides\[0\]\.rule must name a window, such as 'mine\/hour': 'mine' is a rule/,
    ),
  });
  expect((await customers('put', 'acme', '--override', 'mine/hour')).code).not.toBe(0);
  expect((await customers('get', 'acme')).code).toBe(64);
});

it('says what to do about an earlier override whose rule was removed', async () => {
  expect((await customers('put', 'zoe', '--tier', 'pro', '--override', 'mine/hour=500')).code).toBe(0);
  await putRules(DOCUMENT.replace('mine', 'other'));
  const refused = await customers('put', 'zoe', '--tier', 'free');
  expect(refused.code).toBe(64);
  expect(refused.said).toMatch(/have no 'mine\/hour'\. The record of zoe has this override from before/);
  expect(refused.said).toContain('--no-overrides');
  expect((await customers('put', 'zoe', '--tier', 'free', '--no-overrides')).code).toBe(0);
});
