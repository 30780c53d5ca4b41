/** A node that is cut off grants nothing by replaced rules, once the replacement was acknowledged. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { eventually } from '../cluster/harness.ts';
import { seeded } from '../raft/seeded.ts';
import { ClusterUnderTest } from './cluster-under-test.ts';

const RULE = { id: 'default', limit: 1_000_000, windowMillis: 60_000, clock: 'cluster' } as const;
const FREE =
  'rules: [{ id: gold, match: { tier: gold }, key: tier, windows: { limit: 1000000, per: hour } }]';
const LIMITED = 'rules: [{ id: ip, key: ip, windows: { limit: 1, per: hour } }]';
const CUT_OFF = 3;
/** Longer than a leader that is cut off can believe that it leads. */
const ASKING_MILLIS = 2_000;
const IN_ONE_MOMENT = 8;

let cluster: ClusterUnderTest;
beforeAll(async () => {
  const random = seeded(1);
  cluster = await ClusterUnderTest.create({ nodes: 3, spares: 0, rules: [RULE], random, volumes: false });
  await cluster.startAll();
  await cluster.ready();
});
afterAll(async () => {
  await cluster.dispose();
});

async function ask(id: number, path: string, init: RequestInit): Promise<{ status: number; body: object }> {
  const { port } = cluster.node(id).machine.address.http;
  const response = await fetch(`http://127.0.0.1:${port}${path}`, init);
  return { status: response.status, body: (await response.json()) as object };
}

async function put(document: string): Promise<void> {
  await eventually('every partition decides by the document', async () => {
    const headers = { 'content-type': 'text/yaml' };
    const { status, body } = await ask(1, '/v1/rules', { method: 'PUT', headers, body: document });
    const { pending = [] } = body as { readonly pending?: readonly number[] };
    return status === 200 && pending.length === 0 ? true : undefined;
  });
}

async function isFreeAt(id: number): Promise<boolean> {
  const headers = { 'content-type': 'application/json' };
  const question = JSON.stringify({ descriptors: { ip: '203.0.113.9' } });
  const { body } = await ask(id, '/v1/allow', { method: 'POST', headers, body: question });
  return (body as { readonly unlimited?: boolean }).unlimited === true;
}

it('a change of rules applies at every node once it is answered', async () => {
  await put(FREE);
  await eventually('node 3 grants', async () => ((await isFreeAt(CUT_OFF)) ? true : undefined));
  cluster.network.setAll((from, to) => (from === CUT_OFF || to === CUT_OFF ? { blackHole: true } : {}));
  await put(LIMITED);
  const untilMillis = performance.now() + ASKING_MILLIS;
  const answers: boolean[] = [];
  while (performance.now() < untilMillis)
    answers.push(
      ...(await Promise.all(Array.from({ length: IN_ONE_MOMENT }, async () => isFreeAt(CUT_OFF)))),
    );
  expect(answers.length).toBeGreaterThan(0);
  expect(answers.filter((isFree) => isFree)).toEqual([]);
}, 60_000);
