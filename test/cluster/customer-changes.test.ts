/**
 * Changes the tier of a customer all the time, under load and while a leader dies: every answer must fit a tier in
 * force meanwhile.
 */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { eventually, putDocument } from './harness.ts';
import { InProcessCluster } from './in-process.ts';

const BEFORE = { id: 'default', limit: 100, windowMillis: 60_000, clock: 'cluster' } as const;
const TIERS = Array.from({ length: 24 }, (_, i) => `t${i}`);
/** How long each tier is left in place, at least. */
const HOLD_MILLIS = 20;
const DOCUMENT = [
  'rules:',
  ...TIERS.map(
    (tier) =>
      `  - { id: ${tier}, match: { tier: ${tier} }, key: customer, group: g, windows: { limit: 100000, per: day } }`,
  ),
  // Counted in other partitions, so that some requests need several.
  '  - { id: net, key: ip, windows: { limit: 100000, per: day } }',
].join('\n');

/** A tier was applied between these times, by the clock of this process. */
interface Put {
  readonly tier: string;
  readonly fromMillis: number;
  readonly untilMillis: number;
}

interface Decided {
  readonly rules: readonly string[];
  readonly fromMillis: number;
  readonly untilMillis: number;
}

let cluster: InProcessCluster;

beforeAll(async () => {
  cluster = await InProcessCluster.create({
    rules: [BEFORE],
    partitions: 4,
    nodes: 3,
    timing: { requestDeadlineMillis: 10_000 },
  });
  await cluster.startAll();
  await putDocument(
    cluster.config.nodes.map(({ http }) => http.port),
    DOCUMENT,
  );
});
afterAll(() => cluster.stop());

async function call(
  node: number,
  method: string,
  path: string,
  body: unknown,
): Promise<{ status: number; body: unknown }> {
  const port = cluster.config.nodes.find(({ id }) => id === node)?.http.port;
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(`http://127.0.0.1:${port}${path}`, {
    method,
    headers,
    body: JSON.stringify(body),
  });
  return { status: response.status, body: await response.json() };
}

async function put(customer: string, tier: string): Promise<Put> {
  const fromMillis = performance.now();
  await eventually('the tier is put', async () => {
    const { status } = await call(asker(), 'PUT', `/v1/customers/${customer}`, { tier });
    return status === 200 ? true : undefined;
  });
  return { tier, fromMillis, untilMillis: performance.now() };
}

/** Id of the first running node. */
function asker(): number {
  return cluster.running[0] ?? 1;
}

/** Whether the tier was in force at some time in between: from the start of its change to the end of the next one. */
function mayBeOf(puts: readonly Put[], { rules, fromMillis, untilMillis }: Decided): boolean {
  return puts.some(({ tier, fromMillis: since }, i) => {
    const through = puts[i + 1]?.untilMillis ?? Infinity;
    return rules.includes(tier) && since <= untilMillis && fromMillis <= through;
  });
}

it('is decided by a tier that was in force while the request was under way, also after a change of leader', async () => {
  const customer = 'a';
  const puts: Put[] = [await put(customer, TIERS[0]!)];
  const decided: Decided[] = [];
  let isOver = false;
  const client = async (i: number): Promise<void> => {
    while (!isOver) {
      const node = cluster.running[i % cluster.running.length] ?? 0;
      const fromMillis = performance.now();
      // A tier in the request itself is ignored.
      const descriptors = { customer, tier: 'none', ...(i % 3 === 0 && { ip: '10.0.0.1' }) };
      const answered = await call(node, 'POST', '/v1/allow', { descriptors }).catch((error: unknown) => {
        // The node was stopped during the request.
        if (cluster.running.includes(node)) throw error;
      });
      if (answered === undefined) continue;
      const { status, body } = answered;
      const { rule, limits = [] } = body as { rule?: string; limits?: { rule: string }[] };
      const rules = [rule ?? 'none', ...limits.map((limit) => limit.rule)].map(
        (id) => id.split('/')[0] ?? id,
      );
      if (status === 200) decided.push({ rules, fromMillis, untilMillis: performance.now() });
    }
  };
  const clients = [0, 1, 2, 3, 4, 5].map(client);
  for (const [i, tier] of TIERS.entries()) {
    // The leader at that time.
    if (i === TIERS.length / 2)
      await cluster.stopNode(
        await eventually(
          'there is a leader',
          () => cluster.leaderOf(asker(), `customer=${customer}`) || undefined,
        ),
      );
    if (i > 0) puts.push(await put(customer, tier));
    const heldSince = performance.now();
    // On a busy machine a request may take longer than that.
    await eventually('the tier was in force for a while and decided a request', () =>
      performance.now() >= heldSince + HOLD_MILLIS && decided.some(({ rules }) => rules.includes(tier))
        ? true
        : undefined,
    );
  }
  isOver = true;
  await Promise.all(clients);
  expect(decided.filter((one) => !mayBeOf(puts, one))).toEqual([]);
  const seen = new Set(decided.flatMap(({ rules }) => rules));
  expect(TIERS.filter((tier) => !seen.has(tier))).toEqual([]);
  expect(cluster.fatalErrors).toEqual([]);
});
