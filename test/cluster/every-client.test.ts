/**
 * Tests third-party clients at three real nodes while the leader of their user is killed: no grant too many, and the
 * usual answers.
 */
import { createServer, type Server } from 'node:http';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { keySlot, partitionOfSlot } from '../../src/api/key-slot.ts';
import { ran } from '../cli/command.ts';
import { type Gateway, programOf, startNginx, stopGateway } from '../gateways/gateway.ts';
import { eventually, freePorts, TestCluster } from './harness.ts';

const LIMIT = 12;
const PARTITIONS = 4;
const DENIALS_MIN = 3;
const PAUSE_MILLIS = 10;
/** An address that no other client of this test has. */
const ADDRESS = '127.0.0.1';

type Outcome = 'granted' | 'denied' | 'undecided';

/** A client with its own user. @param i number of the request: each starts at another node */
interface Client {
  readonly key: string;
  ask(i: number): Promise<Outcome>;
  stop(): Promise<void> | void;
}

const nginx = programOf('nginx', 'NGINX');
if (nginx === undefined) console.log('skipped: there is no nginx here, nor its path in NGINX');

describe('a cluster of which a leader is killed', () => {
  let cluster: TestCluster;
  beforeAll(async () => {
    cluster = await TestCluster.start({
      partitions: PARTITIONS,
      resp: true,
      rules: [{ id: 'default', limit: LIMIT, windowMillis: 3_600_000, clock: 'cluster' }],
      http: { rateLimitHeaders: ['draft'], trustedProxies: ['127.0.0.1'] },
    });
  });
  afterAll(async () => cluster.stop());

  const nodeOf = (i: number): number => cluster.ids[i % cluster.ids.length] ?? 0;

  function ioredis(): Client {
    const options = { maxRetriesPerRequest: 1, retryStrategy: () => 50 };
    const clients = cluster.config.nodes.map(({ resp }) => new Redis(resp?.port ?? 0, '127.0.0.1', options));
    for (const client of clients) client.on('error', () => {});
    return {
      key: 'redis-user',
      async ask(i) {
        const answer: unknown = await clients[i % clients.length]!.call('ALLOW', 'redis-user').catch(
          (error: unknown) => error,
        );
        if (!Array.isArray(answer)) {
          // No node decided, or the connection broke because its node was killed.
          expect(String(answer)).toMatch(/UNAVAILABLE|ECONN|EPIPE|onnection|MaxRetries/);
          return 'undecided';
        }
        const [isGranted, limit, remaining, retryAfterMillis] = answer.map(Number);
        expect(limit).toBe(LIMIT);
        if (isGranted === 1) return 'granted';
        expect([remaining, (retryAfterMillis ?? 0) > 0]).toEqual([0, true]);
        return 'denied';
      },
      stop: () => {
        for (const client of clients) client.disconnect();
      },
    };
  }

  function commandLine(): Client {
    return {
      key: 'cli-user',
      async ask(i) {
        const node = `127.0.0.1:${cluster.port(nodeOf(i))}`;
        const { code, stdout, said } = await ran(
          ['allow', 'cli-user', '--request-id', `cli-${i}`, '--node', node],
          cluster.directory,
        );
        if (code === 0) {
          expect(stdout).toMatch(new RegExp(`^allowed: \\d+ of ${LIMIT} left, by rule default\n$`));
          return 'granted';
        }
        if (code === 1) {
          expect(stdout).toMatch(new RegExp(`^denied: 0 of ${LIMIT} left, .*again in \\d+ ms\n$`));
          return 'denied';
        }
        // EX_UNAVAILABLE or EX_TEMPFAIL, with a sentence.
        expect([[69, 75].includes(code), said.startsWith('quorate: ')]).toEqual([true, true]);
        return 'undecided';
      },
      stop: () => {},
    };
  }

  let passed = 0;

  async function behindNginx(): Promise<Client> {
    const [listen = 0, behind = 0] = await freePorts(2);
    const application: Server = createServer((_, response) => {
      passed += 1;
      response.end('served');
    });
    await new Promise<void>((resolve) => void application.listen(behind, '127.0.0.1', resolve));
    const gateway: Gateway = await startNginx(nginx ?? '', join(cluster.directory, 'nginx'), {
      listen,
      quorate: cluster.ids.map((id) => cluster.port(id)),
      application: behind,
    });
    const url = `http://127.0.0.1:${listen}/`;
    await eventually('nginx listens', async () => {
      if (gateway.child.exitCode !== null) throw new Error(`nginx ended: ${gateway.said()}`);
      // The client refuses this itself.
      return fetch(`${url}%00`).catch(() => undefined);
    });
    return {
      key: `ip=${ADDRESS}`,
      async ask() {
        const before = passed;
        const response = await fetch(url);
        const text = await response.text();
        expect(passed - before).toBe(response.status === 200 ? 1 : 0);
        if (response.status === 200) {
          expect([text, response.headers.get('ratelimit')]).toEqual([
            'served',
            expect.stringContaining('r='),
          ]);
          return 'granted';
        }
        if (response.status === 429) {
          expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0);
          return 'denied';
        }
        expect(response.status).toBe(500);
        return 'undecided';
      },
      async stop() {
        await stopGateway(gateway);
        await new Promise((resolve) => application.close(resolve));
      },
    };
  }

  /** Sends half of the limit before the kill, and then requests until enough were denied after it. */
  async function drive(client: Client): Promise<Record<Outcome, number>> {
    const seen = { granted: 0, denied: 0, undecided: 0 };
    let asked = 0;
    const ask = async (): Promise<void> => {
      seen[await client.ask(asked)] += 1;
      asked += 1;
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MILLIS));
    };
    // Requests without an answer may have counted, so a denial may come earlier.
    while (seen.granted < LIMIT / 2 && seen.denied === 0) await ask();
    const partition = partitionOfSlot(keySlot(client.key), PARTITIONS);
    const leader = await eventually('there is a leader', async () => {
      const { partitions } = await cluster.status();
      return partitions[partition]?.leader || undefined;
    });
    const killed = cluster.kill(leader);
    while (seen.denied < DENIALS_MIN) await ask();
    await killed;
    await cluster.startMissing();
    return seen;
  }

  it.each([
    { name: 'ioredis', isThere: true, start: ioredis },
    { name: 'quorate allow', isThere: true, start: commandLine },
    { name: 'nginx', isThere: nginx !== undefined, start: behindNginx },
  ])('grants the user of $name the limit and no more', async ({ isThere, start }) => {
    if (!isThere) return;
    const client = await start();
    try {
      const { granted, undecided } = await drive(client);
      expect(granted).toBeLessThanOrEqual(LIMIT);
      // A request without an answer may have counted.
      expect(granted).toBeGreaterThanOrEqual(LIMIT - undecided);
    } finally {
      await client.stop();
    }
  });
});
