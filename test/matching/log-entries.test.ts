/** Counts the log entries that denied requests in several partitions cost, with leaders that commit at once. */
import { describe, expect, it } from 'vitest';
import type { AskAnswer } from '../../src/api/question.ts';
import { FakeDriver, tableOf } from '../partition/fake-driver.ts';
import { ruleSetOf } from './bench.ts';
import { DrivenCluster } from './driven-cluster.ts';

const DOCUMENT = `
rules:
  - { id: user, key: user, windows: { limit: 2, per: minute } }
  - { id: net, key: ip, windows: { limit: 2, per: minute } }
`;
/** The limit per day is in the other partition. */
const WITH_DAY = DOCUMENT.replace(/2, per: minute } }\n$/, '2, per: day } }\n');
const VERSION = 7;
const DAY_MILLIS = 86_400_000;
const TABLE = tableOf(
  VERSION,
  ...['user/minute', 'net/minute'].map((id) => ({ id, limit: 2, windowMillis: 60_000 })),
  { id: 'net/day', limit: 2, windowMillis: DAY_MILLIS },
);
const USER = 0;
const NET = 1;

function partitionOf(userId: string): number {
  return userId.startsWith('user') ? USER : NET;
}

/** @param leads the node that is asked leads these partitions */
function newCluster(leads: readonly number[], document = DOCUMENT): DrivenCluster {
  return new DrivenCluster({
    partitions: 2,
    partitionOf,
    leads,
    ruleSet: ruleSetOf(VERSION, document),
    table: TABLE,
  });
}

/** The answer to `ada` at her limit, from another address, and the number of entries that it costs. */
function denied(
  cluster: DrivenCluster,
  requestId?: string,
): { readonly answer: AskAnswer; readonly entries: number } {
  for (const ip of ['10.0.0.1', '10.0.0.2'])
    expect(cluster.ask({ user: 'ada', ip })).toMatchObject({ decision: { allowed: true } });
  // The first denial is made by the log.
  expect(cluster.ask({ user: 'ada', ip: '10.0.0.4' })).toMatchObject({ decision: { allowed: false } });
  const before = cluster.entries;
  const answer = cluster.ask({ user: 'ada', ip: '10.0.0.3' }, requestId);
  expect(answer).toMatchObject({ decision: { allowed: false, ruleId: 'user/minute' } });
  expect(cluster.left('ip=10.0.0.3', 'net/minute')).toBe(2);
  return { answer, entries: cluster.entries - before };
}

describe('a request over two partitions that the first denies', () => {
  it('costs a reservation and its refund if another node leads the first, and no entry if this node does', () => {
    const elsewhere = denied(newCluster([]));
    const here = denied(newCluster([USER]));
    expect([elsewhere.entries, here.entries]).toEqual([2, 0]);
    expect(here.answer).toMatchObject({ decision: { rulesVersion: VERSION, retryAfterMillis: 60_001 } });
  });

  it('with an id costs one entry: the question whether it was granted before', () => {
    expect([denied(newCluster([]), 'r1').entries, denied(newCluster([USER, NET]), 'r1').entries]).toEqual([
      2, 1,
    ]);
  });

  it('gets the grant of an earlier attempt', () => {
    const cluster = newCluster([USER, NET]);
    const first = cluster.ask({ user: 'ada', ip: '10.0.0.1' }, 'r1');
    cluster.ask({ user: 'bob', ip: '10.0.0.1' });
    const before = cluster.entries;
    const again = cluster.ask({ user: 'ada', ip: '10.0.0.1' }, 'r1');
    expect(again).toMatchObject({ isRepeat: true, decision: { allowed: true } });
    expect(again).toMatchObject({
      decision: { decided: first.kind === 'decision' && first.decision.decided },
    });
    expect(cluster.entries - before).toBe(1);
  });
});

describe('a request over two partitions that the second denies', () => {
  it('costs no entry, and is granted again once there is room', () => {
    const cluster = newCluster([NET]);
    for (const user of ['ada', 'bob']) cluster.ask({ user, ip: '10.0.0.1' }, user);
    const before = cluster.entries;
    expect(cluster.ask({ user: 'eve', ip: '10.0.0.1' })).toMatchObject({
      decision: { allowed: false, ruleId: 'net/minute' },
    });
    expect(cluster.entries).toBe(before);
    for (const { partition } of cluster.partitions) expect(partition.waitingCount).toBe(0);
    for (const driver of cluster.partitions) driver.now += 60_001;
    expect(cluster.ask({ user: 'eve', ip: '10.0.0.1' })).toMatchObject({ decision: { allowed: true } });
  });
});

const FROM = { user: 'ada', ip: '10.0.0.1' };

describe('a request that two limits deny, one for a minute and one for a day', () => {
  it.each(
    [[], [USER], [NET], [USER, NET]].flatMap((leads) =>
      [undefined, 'r2'].flatMap((requestId) => [1, 2].map((cost) => ({ leads, requestId, cost }))),
    ),
  )('names the day and all limits at every node: %j', ({ leads, requestId, cost }) => {
    const cluster = newCluster(leads, WITH_DAY);
    for (let i = 0; i < 2; i += 1) expect(cluster.ask(FROM)).toMatchObject({ decision: { allowed: true } });
    // Denied by the logs first, if that is needed.
    for (const ip of ['10.0.0.1', '10.0.0.9']) cluster.ask({ user: 'ada', ip });
    const before = cluster.entries;
    expect(cluster.ask(FROM, requestId, cost)).toMatchObject({
      decision: {
        allowed: false,
        ruleId: 'net/day',
        retryAfterMillis: DAY_MILLIS + 1,
        limits: [
          { ruleId: 'user/minute', remaining: 0, retryAfterMillis: 60_001 },
          { ruleId: 'net/day', remaining: 0, retryAfterMillis: DAY_MILLIS + 1 },
        ],
      },
      key: 'ip=10.0.0.1',
    });
    // The question whether it was granted before is an entry, and nothing else is.
    expect(cluster.entries - before).toBe(requestId === undefined ? 0 : 1);
  });

  it.each([[[]], [[USER]], [[USER, NET]]])('reports the status of a limit that has room: %j', (leads) => {
    const cluster = newCluster(leads, WITH_DAY);
    for (const ip of ['10.0.0.2', '10.0.0.3']) cluster.ask({ user: 'ada', ip });
    expect(cluster.ask(FROM)).toMatchObject({
      decision: { allowed: false, ruleId: 'user/minute', limits: [{}, { ruleId: 'net/day' }] },
    });
    expect(cluster.left('ip=10.0.0.1', 'net/day')).toBe(2);
  });
});

describe('a denial that needs no entry', () => {
  it('comes from the leader alone, under the same rules as the request, and never for a cost that can never fit', () => {
    const driver = FakeDriver.leading({ table: TABLE });
    const request = { userId: 'user=ada', ruleId: 'user/minute', matchedBy: VERSION };
    expect(driver.partition.deniedAtOnce(request)).toBeUndefined();
    driver.decide({ userId: 'user=ada', ruleId: 'user/minute', cost: 2 });
    expect(driver.partition.deniedAtOnce(request)).toMatchObject({ allowed: false, rulesVersion: VERSION });
    expect(driver.partition.deniedAtOnce({ ...request, cost: 3 })).toBeUndefined();
    expect(driver.partition.deniedAtOnce({ ...request, matchedBy: VERSION + 1 })).toBeUndefined();
    driver.partition.wantRules(tableOf(VERSION + 1, { id: 'user/minute', limit: 9, windowMillis: 60_000 }));
    driver.turn();
    // Requests are now decided by newer rules, although those are not applied yet.
    expect(driver.partition.deniedAtOnce(request)).toBeUndefined();
    expect(driver.partition.deniedAtOnce({ ...request, matchedBy: VERSION + 1 })).toBeUndefined();
    driver.follow();
    expect(driver.partition.deniedAtOnce(request)).toBeUndefined();
  });
});
