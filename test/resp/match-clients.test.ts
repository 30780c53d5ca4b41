/** `MATCH` from the most common client, against three nodes in this process with a rule document. */
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { putDocument } from '../cluster/harness.ts';
import { InProcessCluster } from '../cluster/in-process.ts';
import { decided } from './fixtures.ts';

const BEFORE = { id: 'default', limit: 5, windowMillis: 600_000, clock: 'cluster' } as const;
const DOCUMENT = `
rules:
  - { id: user, key: user, windows: { limit: 3, per: hour } }
  - { id: network, key: ip/24/64, windows: { limit: 7, per: hour } }
`;

let cluster: InProcessCluster;
let clients: Redis[];

beforeAll(async () => {
  // A retry after no answer in time may be charged twice if its keys are in several partitions.
  const timing = { requestDeadlineMillis: 10_000 };
  cluster = await InProcessCluster.create({ rules: [BEFORE], partitions: 8, resp: true, timing });
  await cluster.startAll();
  // A node that receives the document later than the node it was sent to finds no limits until then.
  await putDocument(
    cluster.config.nodes.map(({ http }) => http.port),
    DOCUMENT,
  );
  clients = cluster.config.nodes.map(({ resp }) => new Redis(resp?.port ?? 0, '127.0.0.1'));
});

afterAll(async () => {
  for (const client of clients) client.disconnect();
  await cluster.stop();
});

let requests = 0;

/** Sends MATCH with an id, so that it can be retried if a busy machine could not decide it in time. */
async function match(node: number, ...args: readonly string[]): Promise<unknown> {
  requests += 1;
  const id = args.includes('ID') ? [] : ['ID', `own-${requests}`];
  return decided(async () => clients[node]?.call('MATCH', ...args, ...id));
}

describe('ioredis', () => {
  it('gets the rule that granted or denied it, from any node', async () => {
    const answers: unknown[] = [];
    for (let i = 0; i < 4; i += 1) answers.push(await match(i % 3, '2', 'user', 'ada', 'ip', '10.1.0.1'));
    expect(answers).toEqual([
      [1, 3, 2, 0, expect.any(Number), 'user/hour'],
      [1, 3, 1, 0, expect.any(Number), 'user/hour'],
      [1, 3, 0, expect.any(Number), expect.any(Number), 'user/hour'],
      [0, 3, 0, expect.any(Number), expect.any(Number), 'user/hour'],
    ]);
  });

  it('is denied by the limit of its network, for any user that it names', async () => {
    const answers: unknown[] = [];
    for (let i = 0; i < 8; i += 1)
      answers.push(await match(i % 3, '2', 'user', `made-up-${i}`, 'ip', `10.2.0.${i}`));
    expect(answers.map((answer) => (Array.isArray(answer) ? answer[0] : answer))).toEqual([
      ...Array.from({ length: 7 }, () => 1),
      0,
    ]);
    expect(answers.at(-1)).toEqual([0, 7, 0, expect.any(Number), expect.any(Number), 'network/hour']);
  });

  it('is charged once under one id, and refused if another request used the id', async () => {
    const first = await match(0, '1', 'user', 'zoe', 'ID', 'r1');
    expect(await match(1, '1', 'user', 'zoe', 'ID', 'r1')).toEqual(first);
    await expect(match(2, '1', 'user', 'zoe', 'COST', '2', 'ID', 'r1')).rejects.toThrow('ERR ');
    expect(await match(2, '1', 'user', 'zoe')).toEqual([1, 3, 1, 0, expect.any(Number), 'user/hour']);
  });

  it('is answered with a limit of -1 if no rule has a limit for it', async () => {
    expect(await match(0, '1', 'tenant', 'acme')).toEqual([1, -1, -1, 0, 0, null]);
  });
});
