/** The deadline holds: nothing is executed that clients gave up on, and nothing is granted after it. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { Agent, request as httpRequest, type ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { type AllowBody, eventually, TestCluster } from './harness.ts';
import { InProcessCluster } from './in-process.ts';
import { BusyWatch } from '../slowness.ts';

const LIMIT = 10_000;
const RULE = { id: 'default', limit: LIMIT, windowMillis: 600_000, clock: 'cluster' } as const;
/** Stated in the router and at the door: how far a clock of ticks may be off. */
const TOLERANCE_MILLIS = 20 + 25;

const ROUNDS_MAX = 20;

/** A response has been handed to the system. */
const WRITTEN = 'http.server.response.finish';

interface Seen {
  /** 0: no answer. */
  readonly status: number;
  readonly body: AllowBody | undefined;
}

/** Asks with a patience of its own, on a connection of `agent`, or on a new one. */
async function ask(port: number, userId: string, agent: Agent | false): Promise<Seen> {
  const payload = JSON.stringify({ userId });
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
    request.end(payload);
  });
}

describe('a node that was stopped for longer than the deadline', () => {
  let cluster: TestCluster | undefined;
  const agent = new Agent({ keepAlive: true });
  afterEach(async () => {
    agent.destroy();
    await cluster?.stop();
  });

  it('executes none of the requests it finds in its sockets', async () => {
    // The stop is shorter than an election, so that the leader is one still when it goes on.
    cluster = await TestCluster.start({
      rules: [RULE],
      partitions: 1,
      timing: { electionMillis: 3_000, requestDeadlineMillis: 500 },
    });
    const { partitions } = await cluster.status();
    const leader = partitions[0]?.leader ?? 0;
    const follower = cluster.ids.find((id) => id !== leader) ?? 0;
    const [leaderPort, followerPort] = [cluster.port(leader), cluster.port(follower)];
    // Connections that are there already, and are kept. What a busy machine was too slow for is decided before what it grants then.
    const remaining = await eventually('ten grants on connections that are kept', async () => {
      const warm = await Promise.all(Array.from({ length: 10 }, () => ask(leaderPort, 'ada', agent)));
      return warm.every(({ status }) => status === 200)
        ? Math.min(...warm.map(({ body }) => body?.remaining ?? LIMIT))
        : undefined;
    });
    const { term } = (await cluster.status()).partitions[0] ?? {};

    cluster.signal(leader, 'SIGSTOP');
    const questions = [
      ...Array.from({ length: 10 }, () => ask(leaderPort, 'ada', agent)),
      ...Array.from({ length: 30 }, () => ask(leaderPort, 'ada', false)),
      ...Array.from({ length: 20 }, () => ask(followerPort, 'ada', false)),
    ];
    await delay(1_500);
    cluster.signal(leader, 'SIGCONT');
    const seen = await Promise.all(questions);
    expect(seen.map(({ status }) => status)).toEqual(seen.map(() => 503));
    expect(new Set(seen.slice(0, 40).map(({ body }) => `${body?.reason} ${body?.proposed}`))).toEqual(
      new Set(['deadline false']),
    );
    const { body } = await eventually('a grant after the stop', async () => {
      const answer = await ask(leaderPort, 'ada', agent);
      return answer.status === 200 ? answer : undefined;
    });
    expect(body?.remaining).toBe(remaining - 1);
    const after = await cluster.status();
    expect(after.partitions[0]?.term).toBe(term);
  });
});

describe('a process whose loop is held up', () => {
  let cluster: InProcessCluster | undefined;
  const agent = new Agent({ keepAlive: true });
  let written: ((message: unknown) => void) | undefined;
  afterEach(async () => {
    if (written !== undefined) unsubscribe(WRITTEN, written);
    agent.destroy();
    await cluster?.stop();
  });

  it('grants nothing after the deadline of a request, as its socket sees it', async () => {
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
      const { response } = message as { response: ServerResponse };
      if (response.statusCode === 200) grantedAfter.push(performance.now() - sentMillis);
    };
    subscribe(WRITTEN, onWritten);
    written = onWritten;
    let refused = 0;
    // On a machine that is slow itself, everything may be late: then it is tried again.
    for (let round = 0; round < ROUNDS_MAX && (grantedAfter.length <= 20 || refused <= 40); round += 1) {
      for (const holdMillis of [0, 100, 200, 250, 280, 290, 300, 320, 400, 700]) {
        sentMillis = performance.now();
        const questions = Array.from({ length: 20 }, () => ask(port, `user-${holdMillis}`, agent));
        // They are in the sockets of the server, and it does not come to read them.
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
