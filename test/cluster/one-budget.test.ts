/** Tests that a user has one budget over all listeners and request forms, and that every rule applies to it. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type PermitAnswer, QuorateClient } from '../../src/client/index.ts';
import { EnvoyClient, entriesOf } from '../grpc/envoy-client.ts';
import { decided, RespClient } from '../resp/fixtures.ts';
import { eventually, putDocument, TestCluster } from './harness.ts';

const BEFORE = { id: 'default', limit: 100, windowMillis: 3_600_000, clock: 'cluster' } as const;
const LIMIT = 9;
const DOCUMENT = `
rules:
  - { id: per-user, key: user, windows: [{ limit: ${LIMIT}, per: hour }, { limit: 100, per: day }] }
  - { id: all, windows: { limit: 1000, per: hour } }
  - { id: login, key: user, named: true, windows: { limit: 1, per: hour } }
`;

interface Answer {
  readonly status: number;
  readonly body: {
    readonly rule?: string;
    readonly key?: string;
    readonly remaining?: number;
    readonly limits?: readonly { readonly rule: string; readonly remaining: number }[];
    readonly error?: { readonly field?: string };
  };
}

function reported(answer: PermitAnswer): number | undefined {
  return 'remaining' in answer ? answer.remaining : undefined;
}

describe('one user', () => {
  let cluster: TestCluster;
  let ids = 0;

  beforeAll(async () => {
    cluster = await TestCluster.start({ rules: [BEFORE], partitions: 4, resp: true, grpc: true });
    await putDocument(
      [1, 2, 3].map((id) => cluster.port(id)),
      DOCUMENT,
    );
  });
  afterAll(async () => {
    await cluster.stop();
  });

  /** Repeats a request until it is decided. Its id makes it count once. */
  async function http(body: object): Promise<Answer> {
    const requestId = `h${(ids += 1)}`;
    return eventually('an answer', async () => {
      const response = await fetch(`http://127.0.0.1:${cluster.port(2)}/v1/allow`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ ...body, requestId }),
      });
      const answer = { status: response.status, body: (await response.json()) as Answer['body'] };
      return answer.status === 503 ? undefined : answer;
    });
  }

  async function redis(...command: string[]): Promise<unknown> {
    const client = new RespClient(cluster.config.nodes[0]?.resp?.port ?? 0);
    const id = `r${(ids += 1)}`;
    try {
      return await decided(async () => {
        const reply = await client.ask(...command, 'ID', id);
        if (typeof reply === 'object' && reply !== null && 'error' in reply) throw new Error(reply.error);
        return reply;
      });
    } finally {
      client.socket.destroy();
    }
  }

  async function envoy(): Promise<unknown> {
    const client = new EnvoyClient(cluster.config.nodes[1]?.grpc?.port ?? 0);
    try {
      return await decided(async () => {
        const { code, details, statuses } = await client.ask({
          domain: 'any',
          descriptors: [entriesOf({ user: 'ada' })],
        });
        if (code !== undefined) throw new Error(details);
        return statuses?.[0]?.limitRemaining;
      });
    } finally {
      client.close();
    }
  }

  it('has one budget through HTTP, the Redis protocol, gRPC and the client, and each rule binds it', async () => {
    const client = new QuorateClient({ nodes: [`http://127.0.0.1:${cluster.port(3)}`] });
    const ways: readonly (() => Promise<unknown>)[] = [
      async () => (await http({ userId: 'ada' })).body.remaining,
      async () => (await http({ descriptors: { user: 'ada' } })).body.remaining,
      async () => ((await redis('ALLOW', 'ada')) as number[])[2],
      async () => ((await redis('MATCH', '1', 'user', 'ada')) as number[])[2],
      envoy,
      async () => reported(await client.allow({ userId: 'ada' })),
      async () => reported(await client.allow({ descriptors: { user: 'ada' } })),
    ];
    const left: unknown[] = [];
    for (const ask of ways) left.push(await ask());
    expect(left).toEqual(ways.map((_, i) => LIMIT - 1 - i));
    const { body } = await http({ userId: 'ada' });
    expect(body).toMatchObject({ rule: 'per-user/hour', key: 'user=ada', remaining: 1 });
    expect(body.limits?.map(({ remaining }) => remaining)).toEqual([1, 92, 992]);
    await http({ userId: 'ada' });
    for (const asked of [{ userId: 'ada' }, { descriptors: { user: 'ada' } }])
      expect(await http(asked)).toMatchObject({ status: 429, body: { key: 'user=ada' } });
    client.close();
  });

  it('has nothing left in its status, by its id and by its key', async () => {
    const stands = await Promise.all(
      ['users/ada', 'keys/user=ada'].map(async (path) => {
        const response = await fetch(`http://127.0.0.1:${cluster.port(1)}/v1/${path}`);
        return (await response.json()) as Answer['body'];
      }),
    );
    for (const { key, limits } of stands) {
      expect(key).toBe('user=ada');
      expect(limits?.map(({ remaining }) => remaining)).toEqual([0, 91, 1]);
    }
  });

  // Regression test: a cost that did not fit was charged nowhere, so peeks always reported room.
  it('is charged for a settlement at any listener, and is denied at all of them', async () => {
    const client = new QuorateClient({ nodes: [`http://127.0.0.1:${cluster.port(3)}`] });
    const ways: readonly (() => Promise<unknown>)[] = [
      async () => (await http({ userId: 'bob', cost: 2, settle: true })).body.remaining,
      async () => ((await redis('MATCH', '1', 'user', 'bob', 'COST', '3', 'SETTLE')) as number[])[2],
      async () => ((await redis('ALLOW', 'bob', 'COST', '50', 'SETTLE')) as number[])[2],
      async () => reported(await client.settle({ userId: 'bob', cost: 200 })),
    ];
    const left: unknown[] = [];
    for (const settle of ways) left.push(await settle());
    expect(left).toEqual([LIMIT - 2, LIMIT - 5, 0, 0]);
    expect(await http({ userId: 'bob' })).toMatchObject({ status: 429, body: { key: 'user=bob' } });
    expect(((await redis('ALLOW', 'bob')) as number[])[0]).toBe(0);
    client.close();
  });

  it('is charged the true cost of a request instead of its estimate, once, be it higher or lower', async () => {
    const client = new QuorateClient({ nodes: [`http://127.0.0.1:${cluster.port(3)}`] });
    const reserve = async (requestId: string): Promise<unknown> =>
      reported(await client.allow({ userId: 'cyd', cost: 4, requestId }));
    const settle = async (cost: number, requestId: string): Promise<unknown> =>
      reported(await client.settle({ userId: 'cyd', cost, requestId }));
    expect(await reserve('e1')).toBe(LIMIT - 4);
    expect(await settle(1, 'e1')).toBe(LIMIT - 1);
    expect(await settle(1, 'e1')).toBe(LIMIT - 1);
    expect(await reserve('e2')).toBe(LIMIT - 5);
    expect(await settle(6, 'e2')).toBe(LIMIT - 7);
    expect(reported(await client.allow({ userId: 'cyd' }))).toBe(LIMIT - 8);
    client.close();
  });

  it('is decided by one rule alone if the request names it and the rule allows it', async () => {
    expect(await http({ userId: 'ada', rule: 'login' })).toMatchObject({
      status: 200,
      body: { rule: 'login/hour' },
    });
    expect(await http({ userId: 'ada', rule: 'login' })).toMatchObject({
      status: 429,
      body: { rule: 'login/hour' },
    });
    expect(await http({ userId: 'ada', rule: 'per-user' })).toMatchObject({
      status: 400,
      body: { error: { field: 'rule' } },
    });
  });
});
