/**
 * Three processes that use TLS between each other and with clients: clients notice no difference, and clients without
 * certificates cannot do
 * anything.
 */
import type { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { connect as connectPlainly, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { connect, type TLSSocket } from 'node:tls';
import { credentials, status } from '@grpc/grpc-js';
import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { listenerUrl, nodeFetch } from '../../src/cli/node-fetch.ts';
import { makeNodeCertificate } from '../../src/cli/make-certificates.ts';
import { factsDigest, factsOf } from '../../src/config/cluster-facts.ts';
import { VERSIONS } from '../../src/api/versions.ts';
import { encodeHello } from '../../src/wire/hello.ts';
import { clusterTag, encodeFrame } from '../../src/wire/frame.ts';
import { eventually, TestCluster } from '../cluster/harness.ts';
import { EnvoyClient, entriesOf } from '../grpc/envoy-client.ts';
import { IS_LONG } from '../raft/seeded.ts';
import { HOST } from './authority.ts';

const RULE = { id: 'default', limit: 1_000_000, windowMillis: 60_000, clock: 'cluster' } as const;
const ANSWER_MILLIS_MAX = 60_000;
const TEST_MILLIS_MAX = 240_000;
/** The pause of a client between two handshakes. The test checks if handshakes fail, not how many are possible. */
const PAUSE_MILLIS = 20;
let cluster: TestCluster;
const sockets: Socket[] = [];

beforeAll(async () => {
  cluster = await TestCluster.start({ rules: [RULE], partitions: 4, resp: true, grpc: true, tls: true });
}, TEST_MILLIS_MAX);
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
});
afterAll(async () => {
  await cluster.stop();
});

function addressOf(id: number, listener: 'http' | 'peer' | 'resp' | 'grpc'): { host: string; port: number } {
  const address = cluster.config.nodes.find((node) => node.id === id)?.[listener];
  if (address === undefined) throw new Error(`there is no ${listener} of node ${id}`);
  return address;
}

/** The status of a request on its own connection. */
async function askOnce(id: number): Promise<number> {
  const url = new URL('/v1/allow', listenerUrl({ http: addressOf(id, 'http') }, cluster.config.tls));
  const answer = await nodeFetch(url, {
    signal: AbortSignal.timeout(ANSWER_MILLIS_MAX),
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ userId: 'ada' }),
  });
  return answer.status;
}

/** A node that stalled for seconds breaks handshakes in progress: undefined, and the caller tries again. */
async function unlessHungUp<T>(asked: Promise<T>): Promise<T | undefined> {
  return asked.catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code !== 'ECONNRESET') throw error;
    return undefined;
  });
}

async function expectGranted(id: number): Promise<void> {
  await eventually(`node ${id} grants`, async () =>
    (await unlessHungUp(askOnce(id))) === 200 ? true : undefined,
  );
}

/** The certificate that the HTTP listener uses now. */
async function certificateAt(id: number): Promise<X509Certificate | undefined> {
  return new Promise((resolve, reject) => {
    const socket: TLSSocket = connect({ ...addressOf(id, 'http'), rejectUnauthorized: false }, () => {
      resolve(socket.getPeerX509Certificate());
      socket.destroy();
    });
    socket.once('error', reject);
  });
}

async function serialAt(id: number): Promise<string> {
  return (await certificateAt(id))?.serialNumber ?? '';
}

async function logOf(id: number): Promise<string> {
  return readFile(join(cluster.directory, 'logs', `node-${id}.log`), 'utf8');
}

async function redisAt(id: number): Promise<Redis> {
  const ca = await readFile(join(cluster.directory, 'certs', 'ca.crt'));
  return new Redis({ ...addressOf(id, 'resp'), tls: { ca }, maxRetriesPerRequest: 0 });
}

function opened(socket: Socket): Socket {
  sockets.push(socket);
  socket.on('error', () => {});
  socket.resume();
  return socket;
}

describe('a cluster with certificates everywhere', () => {
  it('grants at every listener', async () => {
    for (const id of cluster.ids) await expectGranted(id);
    const redis = await redisAt(2);
    let users = 0;
    const answer = await eventually('a node decides', async () => {
      // A request that was not decided may have been counted, so the test goes on with another user.
      users += 1;
      const asked = redis.call('ALLOW', `bob${users}`) as Promise<readonly unknown[]>;
      return asked.catch((error: unknown) => {
        // Or the connection was broken before it was established.
        if (!/UNAVAILABLE|MaxRetries/.test(String(error))) throw error;
        return undefined;
      });
    });
    redis.disconnect();
    expect(answer.slice(0, 3)).toEqual([1, RULE.limit, RULE.limit - 1]);
  });

  it('answers gateways that trust it, and no client without TLS', async () => {
    const ca = await readFile(join(cluster.directory, 'certs', 'ca.crt'));
    const { port } = addressOf(3, 'grpc');
    const [trusting, ...others] = [
      new EnvoyClient(port, credentials.createSsl(ca)),
      new EnvoyClient(port, credentials.createSsl()),
      new EnvoyClient(port, credentials.createInsecure()),
    ] as const;
    const asked = { domain: 'edge', descriptors: [entriesOf({ user: 'ada' })] };
    const answer = await eventually('a gateway that trusts it is answered', async () => {
      const { code } = await trusting.ask(asked);
      return code === status.UNAVAILABLE ? undefined : { code };
    });
    const answers = await Promise.all(others.map(async (gateway) => gateway.ask(asked)));
    for (const gateway of [trusting, ...others]) gateway.close();
    // The node was asked, and no rule matches such descriptors.
    expect(answer).toEqual({ code: undefined });
    expect(answers.map(({ code }) => code)).toEqual([status.UNAVAILABLE, status.UNAVAILABLE]);
  });

  it('reports to Prometheus when its certificate expires', async () => {
    const url = new URL('/metrics', listenerUrl({ http: addressOf(1, 'http') }, cluster.config.tls));
    const text = await eventually('its metrics', () =>
      unlessHungUp(
        nodeFetch(url, { signal: AbortSignal.timeout(ANSWER_MILLIS_MAX) }).then((answer) => answer.text()),
      ),
    );
    const reported = /^quorate_certificate_expiry_timestamp_seconds\{setting="tls"\} (\d+)$/m.exec(text);
    const { validTo } = await eventually('its certificate', () => unlessHungUp(certificateAt(1)));
    expect(Number(reported?.[1]) * 1_000).toBe(Date.parse(validTo));
  });

  it('answers no client without TLS', async () => {
    const { port } = addressOf(1, 'http');
    await expect(fetch(`http://${HOST}:${port}/healthz`)).rejects.toThrow('fetch failed');
  });

  it(
    'goes on without a node, and accepts it again',
    async () => {
      await cluster.kill(2);
      await expectGranted(1);
      await expectGranted(3);
      await cluster.startMissing();
      await expectGranted(2);
    },
    TEST_MILLIS_MAX,
  );

  it.runIf(IS_LONG)(
    'accepts new certificates under load, without an error of any client',
    async () => {
      const before = await Promise.all(cluster.ids.map(serialAt));
      const redis = await redisAt(1);
      const unexpected: unknown[] = [];
      redis.on('error', (error) => unexpected.push(error));
      let isOver = false;
      let answersCount = 0;
      const load = cluster.ids.map(async (id) => {
        while (!isOver) {
          const status = await askOnce(id).catch((error: unknown) => error);
          await redis.call('PING').catch((error: unknown) => unexpected.push(error));
          answersCount += 1;
          // Under such load a deadline may pass; that is a valid answer.
          if (status !== 200 && status !== 503) unexpected.push(status);
          await delay(PAUSE_MILLIS);
        }
      });
      for (const id of cluster.ids)
        await makeNodeCertificate({ data: cluster.directory, id, hosts: [], days: 2 });
      for (const [i, id] of cluster.ids.entries()) {
        await eventually(`node ${id} shows its new certificate`, async () =>
          (await serialAt(id)) === before[i] ? undefined : true,
        );
      }
      const answersThen = answersCount;
      await eventually('more answers come', () => (answersCount > answersThen + 20 ? true : undefined));
      isOver = true;
      await Promise.all(load);
      redis.disconnect();
      expect(unexpected).toEqual([]);
      // Peers that reconnect are checked with the new certificates.
      await cluster.kill(3);
      await cluster.startMissing();
      await expectGranted(3);
    },
    TEST_MILLIS_MAX,
  );

  it(
    'is not affected by forged frames',
    async () => {
      const before = await cluster.ready();
      const { clusterId, founders } = cluster.config;
      const tag = clusterTag(clusterId);
      const facts = factsDigest(factsOf(cluster.config));
      const forged = founders.flatMap(({ id, incarnation }) =>
        cluster.ids.map((target) => {
          const hello = encodeHello({ node: id, incarnation, target, facts, speaks: VERSIONS });
          const change = encodeFrame('change', hello, tag, VERSIONS.max);
          return {
            target,
            bytes: Buffer.concat([encodeFrame('hello', hello, tag), change]),
          };
        }),
      );
      let closedCount = 0;
      for (let round = 0; round < 20; round += 1) {
        for (const { target, bytes } of forged) {
          const plain = opened(connectPlainly(addressOf(target, 'peer')));
          plain.write(bytes);
          const secure = connect({ ...addressOf(target, 'peer'), rejectUnauthorized: false });
          opened(secure).once('secureConnect', () => secure.write(bytes));
          for (const socket of [plain, secure]) socket.once('close', () => (closedCount += 1));
        }
      }
      await eventually('all are disconnected', () =>
        closedCount === 20 * 2 * forged.length ? true : undefined,
      );
      // On a busy machine, other nodes may not have heard from a node for a while.
      const after = await cluster.ready();
      expect(after.nodes.map(({ id, up }) => ({ id, up }))).toEqual(
        before.nodes.map(({ id, up }) => ({ id, up })),
      );
      expect(after.version).toBe(before.version);
      await eventually('node 1 has logged it', async () =>
        (await logOf(1)).includes('refused a connection on the peer port') ? true : undefined,
      );
      expect(await logOf(1)).not.toContain('PRIVATE KEY');
      await expectGranted(1);
    },
    TEST_MILLIS_MAX,
  );

  it(
    'stops in time while clients are in the middle of a handshake',
    async () => {
      let openCount = 0;
      for (const listener of ['http', 'resp', 'peer'] as const)
        opened(connectPlainly(addressOf(2, listener))).once('connect', () => (openCount += 1));
      await eventually('they are connected', () => (openCount === 3 ? true : undefined));
      cluster.signal(2, 'SIGTERM');
      expect(await cluster.exitOf(2)).toEqual({ code: 0, signal: null });
      await cluster.startMissing();
    },
    TEST_MILLIS_MAX,
  );

  it.runIf(IS_LONG)(
    'accepts a node again while each peer port has 500 idle connections',
    async () => {
      await cluster.kill(3);
      let openCount = 0;
      for (const id of [1, 2]) {
        for (let i = 0; i < 500; i += 1) {
          opened(connectPlainly(addressOf(id, 'peer'))).once('connect', () => (openCount += 1));
        }
      }
      await eventually('all are open', () => (openCount === 1_000 ? true : undefined));
      await cluster.startMissing();
      await expectGranted(3);
    },
    TEST_MILLIS_MAX,
  );
});
