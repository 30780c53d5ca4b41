/** Common Redis clients against a cluster of three nodes in this process. */
import { spawn } from 'node:child_process';
import { Cluster, Redis } from 'ioredis';
import { createClient, createCluster } from 'redis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { InProcessCluster } from '../cluster/in-process.ts';
import { eventually, WAIT_MILLIS_MAX } from '../cluster/harness.ts';
import { decided } from './fixtures.ts';

const RULES = [
  { id: 'default', limit: 5, windowMillis: 600_000, clock: 'cluster' },
  { id: 'wide', limit: 1_000_000, windowMillis: 600_000, clock: 'request' },
] as const;

/** The answer for a key that was never used, under the default rule. */
const FIRST_GRANT = [1, 5, 4, 0, expect.any(Number)];

/** The status of such a key under that rule. */
const WIDE = ['wide', 1_000_000, 1_000_000];

let cluster: InProcessCluster;
let ports: number[];

beforeAll(async () => {
  // On a busy machine, a thousand commands at once take long.
  const timing = { requestDeadlineMillis: 10_000 };
  cluster = await InProcessCluster.create({ rules: RULES, partitions: 8, resp: true, timing });
  await cluster.startAll();
  ports = cluster.config.nodes.map(({ resp }) => resp?.port ?? 0);
  for (const port of ports) {
    // Clients only find nodes that have slots, and a busy machine may give a node its partitions late.
    await eventually('every node knows all slots, and has some', async () => {
      const client = new Redis(port, '127.0.0.1');
      const info = await client.cluster('INFO');
      client.disconnect();
      const isWhole = info.includes('cluster_slots_assigned:16384') && info.includes('cluster_size:3');
      return isWhole ? true : undefined;
    });
  }
});

afterAll(() => cluster.stop());

type Ask = (i: number, id: string) => Promise<unknown>;

/** How many of `count` requests for a key were granted; each has its own id. */
async function granted(count: number, ask: Ask): Promise<number> {
  const asked = Array.from({ length: count }, async (_, i) => decided(async () => ask(i, `own-${i}`)));
  const answers = await Promise.all(asked);
  for (const answer of answers) expect(answer).toHaveLength(5);
  return answers.filter((answer) => Array.isArray(answer) && Number(answer[0]) === 1).length;
}

/** Undefined: a node had no slots when the client asked, because others led all its partitions. */
function areAll(found: readonly (number | undefined)[]): true | undefined {
  const isAll = ports.every((port) => found.includes(port)) && new Set(found).size === ports.length;
  return isAll ? true : undefined;
}

describe('a node', () => {
  it('reports the Redis addresses of all nodes, and counts its answers', async () => {
    const http = cluster.config.nodes[0]?.http.port ?? 0;
    const report = async (): Promise<unknown> => (await fetch(`http://127.0.0.1:${http}/v1/cluster`)).json();
    await expect
      .poll(report, { timeout: WAIT_MILLIS_MAX })
      .toMatchObject({ nodes: ports.map((port) => ({ resp: `127.0.0.1:${port}` })) });
    const client = new Redis(ports[0] ?? 0, '127.0.0.1');
    await client.call('ALLOW', 'counted');
    client.disconnect();
    const metrics = await (await fetch(`http://127.0.0.1:${http}/metrics`)).text();
    expect(metrics).toMatch(/^quorate_resp_answers_total\{answer="granted"\} [1-9]/m);
  });
});

describe('ioredis', () => {
  it('gets no more grants than the limit from all nodes together', async () => {
    const clients = ports.map((port) => new Redis(port, '127.0.0.1'));
    try {
      const ask: Ask = async (i, id) => clients[i % 3]?.call('ALLOW', 'ioredis', 'ID', id);
      expect(await granted(30, ask)).toBe(5);
      const denial = await decided(async () => clients[0]?.call('ALLOW', 'ioredis'));
      expect(denial).toEqual([0, 5, 0, expect.any(Number), expect.any(Number)]);
    } finally {
      for (const client of clients) client.disconnect();
    }
  });

  it('gets all answers of a long pipeline in order', async () => {
    const client = new Redis(ports[1] ?? 0, '127.0.0.1');
    try {
      let attempts = 0;
      const remaining = await eventually('a pipeline that was decided completely', async () => {
        attempts += 1;
        const pipeline = client.pipeline();
        for (let i = 0; i < 1_000; i += 1) pipeline.call('ALLOW', `pipelined-${attempts}`, 'RULE', 'wide');
        const results = (await pipeline.exec()) ?? [];
        if (results.some(([error]) => String(error).includes('UNAVAILABLE'))) return undefined;
        return results.map(([error, answer]) =>
          error === null && Array.isArray(answer) ? answer[2] : error,
        );
      });
      expect(remaining).toEqual(Array.from({ length: 1_000 }, (_, i) => 999_999 - i));
    } finally {
      client.disconnect();
    }
  });

  it('peeks without being charged, and gets the cost of a refund back', async () => {
    const [one, two] = ports.map((port) => new Redis(port, '127.0.0.1'));
    try {
      const left = async (): Promise<unknown> => {
        const rows = await one?.call('PEEK', 'refunded');
        return Array.isArray(rows) ? rows.map(([rule, limit, remaining]) => [rule, limit, remaining]) : rows;
      };
      expect(await left()).toEqual([['default', 5, 5], WIDE]);
      await two?.call('ALLOW', 'refunded', 'COST', '3', 'ID', 'r1');
      expect(await left()).toEqual([['default', 5, 2], WIDE]);
      expect(await one?.call('PEEK', 'refunded', 'RULE', 'default')).toEqual([
        ['default', 5, 2, 0, expect.any(Number), 600_000],
      ]);
      expect(await one?.call('REFUND', 'refunded', 'ID', 'r1')).toEqual([1, 'default', 3]);
      expect(await two?.call('REFUND', 'refunded', 'ID', 'r1')).toEqual([1, 'default', 3]);
      expect(await two?.call('REFUND', 'refunded', 'ID', 'r2')).toEqual([0, null, 0]);
      expect(await left()).toEqual([['default', 5, 5], WIDE]);
      await expect(one?.call('ALLOW', 'refunded', 'COST', '3', 'ID', 'r1')).rejects.toThrow('ERR ');
    } finally {
      one?.disconnect();
      two?.disconnect();
    }
  });

  it('gets errors in the form of Redis', async () => {
    const client = new Redis(ports[0] ?? 0, '127.0.0.1');
    try {
      await expect(client.call('ALLOW', 'ada', 'COST', '6')).rejects.toThrow('ERR cost must be at most');
      await expect(client.call('ALLOW', 'ada', 'RULE', 'none')).rejects.toThrow('ERR ');
      await expect(client.get('ada')).rejects.toThrow(
        "ERR unknown command 'get', with args beginning with: 'ada'",
      );
    } finally {
      client.disconnect();
    }
  });

  it('finds the nodes of the cluster', async () => {
    await eventually('a report in which every node has slots', async () => {
      const client = new Cluster([{ host: '127.0.0.1', port: ports[0] ?? 0 }]);
      try {
        const users = Array.from({ length: 40 }, (_, i) => `clustered-${i}`);
        const ask = async (user: string): Promise<unknown> => client.call('ALLOW', user, 'ID', 'own');
        const first = await Promise.all(users.map(async (user) => decided(async () => ask(user))));
        for (const answer of first) expect(answer).toEqual(FIRST_GRANT);
        return areAll(client.nodes('master').map(({ options }) => options.port));
      } finally {
        client.disconnect();
      }
    });
  });
});

describe('node-redis', () => {
  it.each([2, 3] as const)('speaks RESP%i', async (RESP) => {
    const client = createClient({ socket: { host: '127.0.0.1', port: ports[0] ?? 0 }, RESP, name: 'me' });
    await client.connect();
    try {
      expect(await client.ping()).toBe('PONG');
      expect(await client.clientGetName()).toBe('me');
      const key = `redis-${RESP}`;
      expect(await granted(12, async (_, id) => client.sendCommand(['ALLOW', key, 'ID', id]))).toBe(5);
      await expect(client.sendCommand(['ALLOW', key, 'COST', 'x'])).rejects.toThrow('ERR cost must be');
    } finally {
      client.destroy();
    }
  });

  it('finds the nodes of the cluster', async () => {
    await eventually('a report in which every node has slots, and every slot a node', async () => {
      const client = createCluster({ rootNodes: [{ socket: { host: '127.0.0.1', port: ports[2] ?? 0 } }] });
      await client.connect();
      try {
        // A partition whose leader moves has no leader for a moment; the client knows no node for its slots then.
        if (Object.keys(client.slots).length < 16_384) return undefined;
        for (const user of ['a', 'b', 'c', 'd', 'e', 'f']) {
          const command = ['ALLOW', user, 'ID', 'own'];
          expect(await decided(async () => client.sendCommand(user, false, command))).toEqual(FIRST_GRANT);
        }
        return areAll(client.masters.map(({ port }) => port));
      } finally {
        client.destroy();
      }
    });
  });
});

describe.each([
  ['redis-cli', ['ALLOW', 'cli']],
  ['redis-cli', ['PEEK', 'cli']],
  ['redis-cli', ['REFUND', 'cli', 'ID', 'none']],
  ['redis-benchmark', ['-n', '1000', '-c', '10', '-P', '4', '-q', 'ALLOW', 'benchmark', 'RULE', 'wide']],
])('%s', (program, args) => {
  it('is served, if it is installed', async (context) => {
    const child = spawn(program, ['-h', '127.0.0.1', '-p', String(ports[0]), ...args]);
    let said = '';
    child.stdout?.on('data', (bytes: Buffer) => (said += bytes.toString()));
    const code = await new Promise<number | null>((resolve) => {
      child.once('error', () => resolve(null));
      child.once('close', resolve);
    });
    if (code === null) context.skip(`${program} is not installed here`);
    expect(said).not.toContain('ERR');
    expect(code).toBe(0);
  });
});
