/** Tests a node whose rules deny unmatched requests: its listeners, its figures, and changes of the rules. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { QuorateClient } from '../../src/client/index.ts';
import { InProcessCluster } from '../cluster/in-process.ts';
import { eventually } from '../cluster/harness.ts';
import { decided, type Ended, ran } from '../cli/command.ts';

const RULES = 'rules: [{ id: user, key: user, windows: { limit: 100, per: hour } }]\n';

let cluster: InProcessCluster;
let node: string;

beforeAll(async () => {
  cluster = await InProcessCluster.create({
    rules: [{ id: 'default', limit: 2, windowMillis: 600_000, clock: 'cluster' }],
    partitions: 2,
    nodes: 1,
    timing: { requestDeadlineMillis: 10_000 },
  });
  await cluster.startAll();
  node = `http://127.0.0.1:${cluster.config.nodes[0]?.http.port}`;
});
afterAll(() => cluster.stop());

async function apply(document: string): Promise<void> {
  await eventually('the document is in force', async () => {
    const headers = { 'content-type': 'text/yaml' };
    const response = await fetch(`${node}/v1/rules`, { method: 'PUT', headers, body: document });
    return response.status === 200 ? true : undefined;
  });
}

async function quorate(...args: readonly string[]): Promise<Ended> {
  return decided(() => ran([...args, '--node', node], cluster.directory));
}

it('denies a misspelt descriptor with the reason, and counts it', async () => {
  await apply(`unmatched: deny\n${RULES}`);
  const client = new QuorateClient({ nodes: [node] });
  expect(await client.allow({ descriptors: { usr: 'ada' } })).toMatchObject({
    kind: 'unmatched',
    allowed: false,
  });
  expect(await client.allow({ userId: 'ada' })).toMatchObject({ kind: 'granted' });
  client.close();
  expect(await quorate('allow', '--descriptor', 'usr=ada')).toMatchObject({
    code: 1,
    stdout: 'denied: no rule matches, and the rules deny such requests\n',
  });
  const metrics = await (await fetch(`${node}/metrics`)).text();
  expect(metrics).toContain('quorate_decisions_total{rule="unmatched",outcome="denied"} 2');
  const peek = await fetch(`${node}/v1/keys/usr=ada`);
  expect(await peek.json()).toMatchObject({ unmatched: true, limits: [] });
});

it('counts requests that it would deny in shadow, and lets them through', async () => {
  await apply(`unmatched: shadow\n${RULES}`);
  const body = JSON.stringify({ descriptors: { usr: 'ada' } });
  const headers = { 'content-type': 'application/json' };
  const answer = await fetch(`${node}/v1/allow`, { method: 'POST', headers, body });
  expect(await answer.json()).toMatchObject({
    allowed: true,
    unlimited: true,
    wouldDeny: [{ rule: 'unmatched', limit: 0 }],
  });
  const metrics = await (await fetch(`${node}/metrics`)).text();
  expect(metrics).toContain('quorate_shadow_decisions_total{rule="unmatched",outcome="wouldDeny"} 1');
  expect((await quorate('users', 'get', 'ada')).stdout).not.toContain('unmatched');
});
