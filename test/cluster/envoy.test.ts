/**
 * Tests Envoy's rate limit protocol over gRPC and in JSON with a real cluster, while the leader of a limit is killed.
 */
import { status } from '@grpc/grpc-js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { keySlot, partitionOfSlot } from '../../src/api/key-slot.ts';
import { type Answered, type Asked, EnvoyClient, entriesOf } from '../grpc/envoy-client.ts';
import { eventually, putDocument, TestCluster } from './harness.ts';

const BEFORE = { id: 'default', limit: 100, windowMillis: 60_000, clock: 'cluster' } as const;
const USER_LIMIT = 20;
const TENANT_LIMIT = 30;
const WORKERS = 4;
const USERS = ['ada', 'bob', 'eve'];
const PARTITIONS = 4;
/** Long, so that a busy machine still decides in time. */
const PATIENT = { requestDeadlineMillis: 3_000 };
// The window is an hour, so no grant leaves it during the test.
const DOCUMENT = `
domain: edge
descriptors:
  - key: tenant
    rate_limit: { name: per_tenant, unit: hour, requests_per_unit: ${TENANT_LIMIT} }
    descriptors:
      - key: user
        rate_limit: { unit: hour, requests_per_unit: ${USER_LIMIT} }
  - key: model
    rate_limit: { unit: hour, requests_per_unit: 1000, post_paid: true }
`;

type Outcome = 'granted' | 'denied' | 'unavailable';

function asked(user: string): Asked {
  return {
    domain: 'edge',
    descriptors: [entriesOf({ tenant: 'acme' }), entriesOf({ tenant: 'acme', user })],
  };
}

describe('a cluster behind a gateway', () => {
  let cluster: TestCluster;
  const clients = new Map<number, EnvoyClient>();

  beforeAll(async () => {
    cluster = await TestCluster.start({
      rules: [BEFORE],
      partitions: PARTITIONS,
      grpc: true,
      timing: PATIENT,
    });
    for (const { id, grpc } of cluster.config.nodes) clients.set(id, new EnvoyClient(grpc?.port ?? 0));
    await putDocument(
      cluster.ids.map((id) => cluster.port(id)),
      DOCUMENT,
    );
  });
  afterAll(async () => {
    for (const client of clients.values()) client.close();
    await cluster.stop();
  });

  async function overGrpc(id: number, user: string): Promise<Answered> {
    return clients.get(id)!.ask(asked(user));
  }

  async function inJson(id: number, user: string): Promise<number> {
    const response = await fetch(`http://127.0.0.1:${cluster.port(id)}/json`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(asked(user)),
    }).catch(() => undefined);
    await response?.arrayBuffer().catch(() => undefined);
    return response?.status ?? 0;
  }

  /** Sends a request over gRPC or in JSON. */
  async function askOnce(id: number, user: string, listener: number): Promise<Outcome> {
    if (listener % 2 === 0) {
      const code = await inJson(id, user);
      if (code === 200) return 'granted';
      return code === 429 ? 'denied' : 'unavailable';
    }
    const { overallCode, code } = await overGrpc(id, user);
    if (overallCode === 'OK') return 'granted';
    if (overallCode === 'OVER_LIMIT') return 'denied';
    expect([status.UNAVAILABLE, status.CANCELLED, status.INTERNAL]).toContain(code);
    return 'unavailable';
  }

  /** Sends a cost under the post-paid rule; cost 0 is a peek. */
  async function usedOf(hitsAddend: number): Promise<unknown> {
    return eventually('an answer', async () => {
      const response = await fetch(`http://127.0.0.1:${cluster.port(1)}/json`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({
          domain: 'edge',
          descriptors: [{ ...entriesOf({ model: 'big' }), hitsAddend }],
        }),
      });
      const answer: unknown = await response.json();
      return response.status === 503 ? undefined : answer;
    });
  }

  // AI gateways peek before a request and charge its tokens afterwards. Regression test: tokens that did not fit were
  // charged nowhere, so each peek was OK.
  it('charges used tokens beyond the limit of a post-paid rule, and peeks are over the limit from then on', async () => {
    const reported = [await usedOf(0), await usedOf(1_500), await usedOf(0), await usedOf(200)];
    expect(reported).toMatchObject([
      { overallCode: 'OK', statuses: [{ limitRemaining: 1_000 }] },
      { overallCode: 'OK', statuses: [{ code: 'OK' }] },
      { overallCode: 'OVER_LIMIT', statuses: [{ code: 'OVER_LIMIT' }] },
      { overallCode: 'OK' },
    ]);
  });

  it('is over the limit if the cost does not fit into one of its limits, and then nothing is charged', async () => {
    let tenants = 0;
    const answer = await eventually('an answer to a cost that fits', async () => {
      // A request without an answer may have counted. Then the test repeats with a tenant without any charge.
      tenants += 1;
      const tenant = `beta${tenants}`;
      const descriptors = [entriesOf({ tenant }), entriesOf({ tenant, user: 'joe' })];
      const once = async (hitsAddend: number): Promise<Answered | undefined> => {
        const answered = await clients.get(1)!.ask({ domain: 'edge', descriptors, hitsAddend });
        return answered.code === status.UNAVAILABLE ? undefined : answered;
      };
      for (const hits of [USER_LIMIT + 1, TENANT_LIMIT + 1, 1_000_000, 1_000_001, 0xffff_ffff]) {
        const { overallCode, statuses } = await eventually('an answer', async () => once(hits));
        const { details } = await eventually('another', async () => once(hits));
        expect([hits, overallCode, details]).toEqual([hits, 'OVER_LIMIT', undefined]);
        expect(statuses?.map(({ code }) => code)).toContain('OVER_LIMIT');
      }
      return once(USER_LIMIT);
    });
    expect(answer).toMatchObject({
      overallCode: 'OK',
      statuses: [{ limitRemaining: TENANT_LIMIT - USER_LIMIT }, { limitRemaining: 0 }],
    });
  });

  it('grants no more than the limit while its leader is killed, and still denies afterwards', async () => {
    const granted = new Map(USERS.map((user) => [user, 0]));
    let denied = 0;
    let isKilled = false;
    const total = (): number => [...granted.values()].reduce((a, b) => a + b, 0);
    const work = async (worker: number): Promise<void> => {
      for (let i = worker; denied < 30 || !isKilled; i += WORKERS) {
        const user = USERS[i % USERS.length]!;
        const outcome = await askOnce(1 + (i % 3), user, Math.floor(i / 3));
        if (outcome === 'granted') granted.set(user, (granted.get(user) ?? 0) + 1);
        else if (outcome === 'denied') denied += 1;
        else await new Promise((resolve) => setTimeout(resolve, 5));
      }
    };
    const workers = Array.from({ length: WORKERS }, (_, i) => work(i));
    await eventually('some grants', () => (total() >= 5 ? true : undefined));
    const partition = partitionOfSlot(keySlot('tenant=acme'), PARTITIONS);
    const victim = await eventually('a leader', async () => {
      const { partitions } = await cluster.status();
      return partitions[partition]?.leader || undefined;
    });
    await cluster.kill(victim);
    isKilled = true;
    await Promise.all(workers);
    const expectNoneTooMany = (): void => {
      expect(total()).toBeLessThanOrEqual(TENANT_LIMIT);
      for (const grants of granted.values()) expect(grants).toBeLessThanOrEqual(USER_LIMIT);
    };
    expectNoneTooMany();

    const survivor = cluster.ids.find((id) => id !== victim) ?? 0;
    // Reservations of denied requests may have been given back since, so some requests may be granted first.
    const note = (user: string): undefined => {
      granted.set(user, (granted.get(user) ?? 0) + 1);
      expectNoneTooMany();
    };
    const statuses = await eventually('a denial over gRPC', async () => {
      const answered = await overGrpc(survivor, 'ada');
      return answered.overallCode === 'OK' ? note('ada') : answered.statuses;
    });
    expect(statuses.map(({ code }) => code)).toContain('OVER_LIMIT');
    await eventually('the same in JSON', async () => {
      const code = await inJson(survivor, 'bob');
      if (code === 200) return note('bob');
      return code === 429 ? true : undefined;
    });
    await eventually('its metrics', async () => {
      const text = await (await fetch(`http://127.0.0.1:${cluster.port(survivor)}/metrics`)).text();
      return /quorate_grpc_answers_total\{answer="denied"\} [1-9]/.test(text) ? true : undefined;
    });
  });
});
