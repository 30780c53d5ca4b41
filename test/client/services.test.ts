/**
 * Tests services against real nodes: the examples of the guides, and that killing a leader causes no grant too many.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { keySlot, partitionOfSlot } from '../../src/api/key-slot.ts';
import { eventually, TestCluster } from '../cluster/harness.ts';
import { ExampleRun, examplesOf } from './guide-examples.ts';
import { type Service, startServices } from './services.ts';

const GUIDES = [
  'docs/start.md',
  'src/client/PACKAGE.md',
  'docs/reference/client.md',
  'docs/reference/middleware.md',
];
const EXAMPLES = GUIDES.flatMap(examplesOf);
const LIMIT = 20;
const ASKED_MIN = 25;
const USERS = 2;
const PARTITIONS = 4;
/** Pause of a user between two requests, because nodes and services run on one machine. */
const PAUSE_MILLIS = 60;

const RULES = [
  { id: 'default', limit: 100, windowMillis: 60_000, clock: 'cluster' },
  { id: 'twenty', limit: LIMIT, windowMillis: 3_600_000, clock: 'cluster' },
] as const;

let cluster: TestCluster;
beforeAll(async () => {
  cluster = await TestCluster.start({ partitions: PARTITIONS, rules: RULES });
});
afterAll(async () => cluster.stop());

describe('the guides', () => {
  let run: ExampleRun;
  beforeAll(async () => {
    await eventually('the cluster decided all requests of the examples', async () => {
      run = await ExampleRun.start(
        EXAMPLES,
        cluster.ids.map((id) => cluster.port(id)),
      );
      const isOver = (): boolean => run.isUndecided || run.isReady;
      await eventually('all examples have run', () => (isOver() ? true : undefined));
      if (!run.isUndecided) return true;
      // The first attempt may have counted, so the examples restart with an empty cluster.
      await run.stop();
      await cluster.stop();
      cluster = await TestCluster.start({ partitions: PARTITIONS, rules: RULES });
      return undefined;
    });
  });
  afterAll(async () => run.stop());

  it('have examples of everything', () => {
    expect(EXAMPLES.length).toBeGreaterThanOrEqual(9);
    expect(EXAMPLES.filter(({ isService, prints }) => !isService && prints.length === 0)).toEqual([]);
  });

  it.each(EXAMPLES.filter(({ isService }) => !isService))(
    'print the promised output: $name',
    ({ name, prints }) => {
      expect(run.printed.get(name)).toEqual(prints);
    },
  );

  it.each(EXAMPLES.filter(({ isService }) => isService))(
    'have services that answer with limit headers: $name',
    async ({ name }) => {
      const url = run.urls.get(name) ?? '';
      const response = await eventually(`${name} listens, and a node decides`, async () => {
        const answer = await fetch(url).catch(() => undefined);
        return answer?.status === 503 ? undefined : answer;
      });
      expect([response.status, await response.text()]).toEqual([200, 'hello']);
      expect(response.headers.get('x-ratelimit-limit')).toBe('100');
    },
  );
});

interface Asked {
  readonly user: string;
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly endedMillis: number;
}

/** One user, who sends requests until enough were denied, and at least while `goesOn` returns true. */
async function askAll({ name, origin }: Service, i: number, goesOn: () => boolean): Promise<Asked[]> {
  const user = `${name}-${i}`;
  const seen: Asked[] = [];
  while (seen.length < ASKED_MIN || goesOn()) {
    const { status, headers, ...response } = await ask(origin, user);
    seen.push({ user, status, headers, text: response.text, endedMillis: performance.now() });
    await delay(PAUSE_MILLIS);
  }
  return seen;
}

async function ask(origin: string, user: string): Promise<Pick<Asked, 'status' | 'headers' | 'text'>> {
  const response = await fetch(origin, { headers: { 'x-user': user } });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

/** Fraction of a client's requests that went to a known leader. */
function straightFractionOf(events: Service['events']): number {
  let requests = 0;
  let straight = 0;
  for (const event of events) {
    if (event.type !== 'sent') continue;
    requests += event.requests;
    straight += event.straight;
  }
  return straight / requests;
}

describe('while a leader is killed', () => {
  let services: Service[];
  beforeAll(async () => {
    services = await startServices({
      nodes: cluster.ids.map((id) => `http://127.0.0.1:${cluster.port(id)}`),
      rule: 'twenty',
    });
  });
  afterAll(async () => {
    await Promise.all(services.map(async ({ stop }) => stop()));
  });

  it('every service grants its users their limit and no more, and answers with limit headers', async () => {
    // Makes sure that the kill affects a user.
    const [firstUser = ''] = services.map(({ name }) => `user:${name}-0`);
    const partition = partitionOfSlot(keySlot(firstUser), PARTITIONS);
    let isOver = false;
    const load = services.flatMap((service) =>
      Array.from({ length: USERS }, async (_, i) => askAll(service, i, () => !isOver)),
    );
    const asked = Promise.all(load);
    // By now every service has sent requests and learned the leaders.
    await eventually('all services know the leaders', () =>
      services.every(({ events }) => events.some(({ type }) => type === 'leaders')) ? true : undefined,
    );
    const leader = await eventually('there is a leader', async () => {
      const { partitions } = await cluster.status();
      return partitions[partition]?.leader || undefined;
    });
    await cluster.kill(leader);
    const killedMillis = performance.now();
    // Every service gets grants for new users of every partition again.
    for (const { name, origin } of services) {
      for (let i = 0; i < PARTITIONS; i += 1) {
        await eventually(`${name} grants again`, async () => {
          const { status } = await ask(origin, `after-${name}-${i}`);
          return status === 200 ? true : undefined;
        });
      }
    }
    isOver = true;
    const seen = await asked;

    for (const answers of seen) {
      const user = answers[0]?.user;
      const granted = answers.filter(({ status }) => status === 200);
      const denied = answers.filter(({ status }) => status === 429);
      const undecided = answers.filter(({ status }) => status === 503).length;
      expect({ user, others: answers.length - granted.length - denied.length - undecided }).toEqual({
        user,
        others: 0,
      });
      expect(granted.length).toBeLessThanOrEqual(LIMIT);
      // A request without an answer may have been counted.
      expect(granted.length).toBeGreaterThanOrEqual(LIMIT - undecided);
      for (const { headers, text } of granted) {
        expect(text).toBe('hello');
        expect(headers.get('x-ratelimit-limit')).toBe('20');
        expect(headers.get('ratelimit-policy')).toBe('"twenty";q=20;w=3600');
      }
      for (const { headers, text } of denied) {
        expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
        expect(headers.get('x-ratelimit-remaining')).toBe('0');
        expect(JSON.parse(text)).toMatchObject({
          error: { type: 'rate_limit_error', limit: 20, window: '3600s' },
        });
      }
    }
    expect(seen.flat().some(({ endedMillis }) => endedMillis > killedMillis)).toBe(true);
    for (const { name, events } of services) {
      const broken = events.filter((event) => event.type === 'received' && event.status === 0).length;
      console.log(
        `${name}: ${events.filter(({ type }) => type === 'retry').length} retries, ${broken} batches without an answer`,
      );
    }
  });

  it('most requests went straight to leaders', async () => {
    for (const { name, origin, events } of services) {
      // While a surviving node was paused there was no leader, and requests were repeated. So send more to raise the
      // fraction.
      await eventually(`most requests of ${name} went straight`, async () => {
        if (straightFractionOf(events) > 0.5) return true;
        await ask(origin, `more-${name}-${events.length}`);
        return undefined;
      });
      expect(straightFractionOf(events)).toBeGreaterThan(0.5);
    }
  });
});
