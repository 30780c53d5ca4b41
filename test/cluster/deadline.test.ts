/**
 * Tests the request deadline: a request that its client gave up is not executed, and nothing is granted after the
 * deadline.
 */
import { randomUUID } from 'node:crypto';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { Agent, type ClientRequest, request as httpRequest, type ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import type { Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { type AllowBody, eventually, TestCluster } from './harness.ts';
import { InProcessCluster } from './in-process.ts';
import { BusyWatch } from '../slowness.ts';

const LIMIT = 10_000;
const RULE = { id: 'default', limit: LIMIT, windowMillis: 600_000, clock: 'cluster' } as const;
/** How inexact the tick clock of the router and the listener may be. */
const TOLERANCE_MILLIS = 20 + 25;

const ROUNDS_MAX = 20;

/** The process has passed the response to the operating system. */
const WRITTEN = 'http.server.response.finish';

interface Seen {
  /** 0: no answer. */
  readonly status: number;
  readonly body: AllowBody | undefined;
}

interface AskOptions {
  /** Request id. A repeated request with the same id counts once. */
  readonly requestId?: string;
  /** Called with the request before anything is sent. */
  readonly made?: (request: ClientRequest) => void;
}

/** Sends a request with its own timeout, on a connection of `agent` or on a new one. */
async function ask(
  port: number,
  userId: string,
  agent: Agent | false,
  { requestId, made = () => {} }: AskOptions = {},
): Promise<Seen> {
  const payload = JSON.stringify({ userId, requestId });
  return new Promise((resolve) => {
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(payload) };
    const request = httpRequest({
      port,
      host: '127.0.0.1',
      method: 'POST',
      path: '/v1/allow',
      agent,
      headers,
    });
    request.on('response', (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () => {
        const body = JSON.parse(Buffer.concat(chunks).toString('utf8')) as AllowBody;
        resolve({ status: response.statusCode ?? 0, body });
      });
    });
    request.on('error', () => resolve({ status: 0, body: undefined }));
    made(request);
    request.end(payload);
  });
}

async function leadership(cluster: TestCluster): Promise<{ leader: number; term: number }> {
  return eventually('a leader', async () => {
    const { leader = 0, term = 0 } = (await cluster.status()).partitions[0] ?? {};
    return leader === 0 ? undefined : { leader, term };
  });
}

interface Stopped {
  /** Answers to 40 requests to the stopped node, then to 20 requests to another one. */
  readonly seen: readonly Seen[];
  /** After the last grant before the stop, and after the first one since. */
  readonly remainingBefore: number;
  readonly remainingAfter: number;
}

/** Sends requests to a node that is paused for longer than the deadline, and to another node. */
async function stopLeader(cluster: TestCluster, leader: number, agent: Agent): Promise<Stopped> {
  const follower = cluster.ids.find((id) => id !== leader) ?? 0;
  const [leaderPort, followerPort] = [cluster.port(leader), cluster.port(follower)];
  // Opens the kept connections. Requests that a busy machine was too slow for are decided before the grants of this
  // step.
  const remainingBefore = await eventually('ten grants on kept connections', async () => {
    const warm = await Promise.all(Array.from({ length: 10 }, () => ask(leaderPort, 'ada', agent)));
    return warm.every(({ status }) => status === 200)
      ? Math.min(...warm.map(({ body }) => body?.remaining ?? LIMIT))
      : undefined;
  });
  cluster.signal(leader, 'SIGSTOP');
  const sent: Promise<unknown>[] = [];
  const question = (port: number, from: Agent | false): Promise<Seen> =>
    ask(port, 'ada', from, { made: (request) => sent.push(once(request, 'finish')) });
  const questions = [
    ...Array.from({ length: 10 }, () => question(leaderPort, agent)),
    ...Array.from({ length: 30 }, () => question(leaderPort, false)),
    ...Array.from({ length: 20 }, () => question(followerPort, false)),
  ];
  // The pause keeps all requests in its sockets beyond their deadline, even if this process is delayed before it sends
  // them.
  await Promise.all(sent);
  await delay(1_500);
  cluster.signal(leader, 'SIGCONT');
  const seen = await Promise.all(questions);
  // All attempts have one id: an attempt that a busy machine is too slow for may be charged, and must count once.
  const requestId = randomUUID();
  const remainingAfter = await eventually('a grant after the stop', async () => {
    const { status, body } = await ask(leaderPort, 'ada', agent, { requestId });
    return status === 200 ? body?.remaining : undefined;
  });
  return { seen, remainingBefore, remainingAfter };
}

describe('a node that was stopped for longer than the deadline', () => {
  let cluster: TestCluster | undefined;
  const agent = new Agent({ keepAlive: true });
  afterEach(async () => {
    agent.destroy();
    await cluster?.stop();
  });

  it('executes none of the requests that waited in its sockets', async () => {
    // The pause is shorter than an election timeout, so the leader still leads when it continues.
    cluster = await TestCluster.start({
      rules: [RULE],
      partitions: 1,
      timing: { electionMillis: 3_000, requestDeadlineMillis: 500 },
    });
    for (let round = 0; round < ROUNDS_MAX; round += 1) {
      const before = await leadership(cluster);
      const stopped = await stopLeader(cluster, before.leader, agent);
      const after = await leadership(cluster);
      // On a busy machine another node may become leader and decide. Such a round proves nothing about the paused node.
      if (after.leader !== before.leader || after.term !== before.term) continue;
      expect(stopped.seen.map(({ status }) => status)).toEqual(stopped.seen.map(() => 503));
      expect(
        new Set(stopped.seen.slice(0, 40).map(({ body }) => `${body?.reason} ${body?.proposed}`)),
      ).toEqual(new Set(['deadline false']));
      expect(stopped.remainingAfter).toBe(stopped.remainingBefore - 1);
      return;
    }
    throw new Error(`in each of ${ROUNDS_MAX} rounds another node came to lead`);
  });
});

describe('a process whose event loop is blocked', () => {
  let cluster: InProcessCluster | undefined;
  const agent = new Agent({ keepAlive: true });
  let written: ((message: unknown) => void) | undefined;
  afterEach(async () => {
    if (written !== undefined) unsubscribe(WRITTEN, written);
    agent.destroy();
    await cluster?.stop();
  });

  it('grants nothing after the deadline of a request, measured at the socket of the client', async () => {
    const deadlineMillis = 300;
    cluster = await InProcessCluster.create({
      rules: [RULE],
      partitions: 2,
      timing: { requestDeadlineMillis: deadlineMillis },
      nodes: 1,
    });
    await cluster.startAll();
    const port = cluster.config.nodes[0]?.http.port ?? 0;
    await Promise.all(Array.from({ length: 20 }, () => ask(port, 'ada', agent)));

    const busy = new BusyWatch();
    let sentMillis = 0;
    const grantedAfter: number[] = [];
    const onWritten = (message: unknown): void => {
      const { response, socket } = message as { response: ServerResponse; socket: Socket };
      // The process may still warm up, and then answers requests of its own at another port.
      if (response.statusCode === 200 && socket.localPort === port)
        grantedAfter.push(performance.now() - sentMillis);
    };
    subscribe(WRITTEN, onWritten);
    written = onWritten;
    let refused = 0;
    // On a slow machine everything may be late: then the test repeats.
    for (let round = 0; round < ROUNDS_MAX && (grantedAfter.length <= 20 || refused <= 40); round += 1) {
      for (const holdMillis of [0, 100, 200, 250, 280, 290, 300, 320, 400, 700]) {
        sentMillis = performance.now();
        const questions = Array.from({ length: 20 }, () => ask(port, `user-${holdMillis}`, agent));
        // The requests are in the sockets of the server, which cannot read them while its event loop is blocked.
        for (let i = 0; i < 5; i += 1) await new Promise((resolve) => process.nextTick(resolve));
        while (performance.now() - sentMillis < holdMillis);
        const seen = await Promise.all(questions);
        refused += seen.filter(({ status }) => status === 503).length;
        expect(seen.every(({ status }) => status === 200 || status === 503)).toBe(true);
      }
    }
    expect(Math.max(...grantedAfter)).toBeLessThanOrEqual(
      deadlineMillis + TOLERANCE_MILLIS * busy.slowness(),
    );
    expect(grantedAfter.length).toBeGreaterThan(20);
    expect(refused).toBeGreaterThan(40);
  });
});
