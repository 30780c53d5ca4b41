/** Tests that the last node of a real cluster answers by the fail modes of the rules. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually, TestCluster } from './harness.ts';

const BEFORE = { id: 'default', limit: 100, windowMillis: 60_000, clock: 'cluster' } as const;
const LOCAL_LIMIT = 11;
const FRACTION = Math.floor(LOCAL_LIMIT / 3);
const DOCUMENT = `
rules:
  - { id: closed, match: { mode: closed }, key: user, windows: { limit: 50, per: hour } }
  - { id: open, match: { mode: open }, key: user, windows: { limit: 2, per: hour }, failMode: open }
  - { id: local, match: { mode: local }, key: user, windows: { limit: ${LOCAL_LIMIT}, per: hour }, failMode: local }
  - { id: network, key: ip, windows: { limit: 50, per: hour } }
`;
const SURVIVOR = 2;

interface Answer {
  readonly status: number;
  readonly retryAfter: number;
  readonly body: {
    readonly allowed: boolean;
    readonly degraded?: true;
    readonly rules?: readonly string[];
    readonly retryAfterMillis?: number;
    readonly reason?: string;
    readonly decided?: object;
  };
}

describe('a cluster of which one node of three is left', () => {
  let cluster: TestCluster;
  /** Answers by fail mode so far, by rule. */
  const degraded = new Map<string, number>();

  beforeAll(async () => {
    cluster = await TestCluster.start({ rules: [BEFORE], partitions: 4 });
    await eventually('the rules in force', async () =>
      (await put(DOCUMENT)).status === 200 ? true : undefined,
    );
  });
  afterAll(async () => {
    await cluster.stop();
  });

  function url(path: string): string {
    return `http://127.0.0.1:${cluster.port(SURVIVOR)}${path}`;
  }

  async function put(document: string): Promise<Response> {
    return fetch(url('/v1/rules'), {
      method: 'PUT',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ document }),
    });
  }

  async function ask(body: object): Promise<Answer> {
    const response = await fetch(url('/v1/allow'), {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    const retryAfter = Number(response.headers.get('retry-after') ?? 0);
    const answered = (await response.json()) as Answer['body'];
    for (const rule of answered.rules ?? []) degraded.set(rule, (degraded.get(rule) ?? 0) + 1);
    return { status: response.status, retryAfter, body: answered };
  }

  async function described(descriptors: Readonly<Record<string, string>>): Promise<Answer> {
    return ask({ descriptors });
  }

  async function times(count: number, descriptors: Readonly<Record<string, string>>): Promise<Answer[]> {
    return Promise.all(Array.from({ length: count }, async () => described(descriptors)));
  }

  function logOf(id: number): readonly { readonly msg?: string; readonly decisions?: number }[] {
    const text = readFileSync(join(cluster.directory, 'logs', `node-${id}.log`), 'utf8');
    // The log may end in the middle of a line.
    const lines = text.slice(0, text.lastIndexOf('\n')).split('\n');
    return lines.filter((line) => line.startsWith('{')).map((line) => JSON.parse(line) as { msg?: string });
  }

  it('decides by the log while there is a majority, with any fail mode', async () => {
    for (const mode of ['closed', 'open', 'local']) {
      const { body } = await eventually('a decision', async () => {
        // All attempts have one id: a late one that a fail mode answered is charged once.
        const answer = await ask({ descriptors: { mode, user: 'ada' }, requestId: mode });
        return answer.body.decided === undefined ? undefined : answer;
      });
      expect(body).toMatchObject({ allowed: true, decided: {} });
      expect(body).not.toHaveProperty('degraded');
    }
  });

  it('refuses where a rule is closed, also beside an open one, and where the request states its limit', async () => {
    await Promise.all([1, 3].map(async (id) => cluster.kill(id)));
    const answers = await Promise.all([
      described({ mode: 'closed', user: 'ada' }),
      described({ mode: 'open', user: 'ada', ip: '10.0.0.1' }),
      described({ mode: 'local', user: 'ada', ip: '10.0.0.1' }),
      ask({ userId: 'ada', rule: '5/60000ms' }),
    ]);
    for (const { status, body } of answers) {
      expect(status).toBe(503);
      expect(body).toMatchObject({ allowed: false });
      expect(body).not.toHaveProperty('degraded');
    }
  });

  it('grants under an open rule beyond its limit, without a receipt', async () => {
    for (const { status, body } of await times(6, { mode: 'open', user: 'bob' })) {
      expect({ status, body }).toEqual({
        status: 200,
        body: {
          allowed: true,
          degraded: true,
          rules: ['open/hour'],
          rulesVersion: expect.any(Number) as unknown,
        },
      });
    }
  });

  it('grants the local fraction of a local rule, and says when there is more', async () => {
    const answers = await times(2 * LOCAL_LIMIT, { mode: 'local', user: 'bob' });
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(FRACTION);
    for (const { status, retryAfter, body } of answers) {
      expect(body).toMatchObject({ degraded: true, rules: ['local/hour'], allowed: status === 200 });
      expect(body).not.toHaveProperty('decided');
      if (status === 200) continue;
      expect(status).toBe(429);
      expect(retryAfter * 1_000).toBeGreaterThanOrEqual(body.retryAfterMillis ?? Infinity);
      expect(body.retryAfterMillis).toBeGreaterThan(3_500_000);
    }
    expect((await described({ mode: 'local', user: 'eve' })).status).toBe(200);
  });

  it('counts answers by fail mode separately', async () => {
    const metrics = await (await fetch(url('/metrics'))).text();
    for (const [rule, count] of degraded)
      expect(metrics).toContain(`quorate_decisions_total{rule="${rule}",outcome="degraded"} ${count}`);
    const usage: unknown = await (await fetch(url('/v1/usage'))).json();
    const row = { rule: 'open/hour', allowed: 1, denied: 0, degraded: degraded.get('open/hour') };
    expect(usage).toMatchObject({
      rules: expect.arrayContaining([expect.objectContaining(row)]) as unknown,
      history: { degraded: expect.any(Array) as unknown },
    });
  });

  it('decides by the log again when a majority is back, and has logged when the fail modes began and ended', async () => {
    await cluster.startMissing();
    const { body } = await eventually('a decision', async () => {
      // Not Bob: if the survivor was paused, it may have led a while longer and have his requests in its log.
      const answer = await described({ mode: 'local', user: 'joe' });
      return answer.body.decided === undefined ? undefined : answer;
    });
    expect(body).toMatchObject({ allowed: true, limit: LOCAL_LIMIT });
    const decisions = [...degraded.values()].reduce((sum, count) => sum + count, 0);
    // On a busy machine the fail modes may pause for a while, which the log reports, too.
    await eventually('each beginning and end in the log, with the numbers of decisions', () => {
      const reported = logOf(SURVIVOR).filter(({ msg }) => /^(?:no longer )?degraded/.test(msg ?? ''));
      const isInTurn = reported.every(({ msg }, at) => msg?.startsWith('degraded:') === (at % 2 === 0));
      const sum = reported.reduce((all, { decisions: some = 0 }) => all + some, 0);
      return isInTurn && reported.length % 2 === 0 && sum === decisions ? true : undefined;
    });
  });
});
