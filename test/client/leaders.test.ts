/** Tests that a client sends requests straight to leaders, and to other nodes while a leader is unknown or gone. */
import { describe, expect, it } from 'vitest';
import type { LeadersReport } from '../../src/api/leaders.ts';
import { keySlot, partitionOfSlot } from '../../src/api/key-slot.ts';
import { A, B, C, grantOf, Played, type Sent, unavailableOf, watched } from './played.ts';

const NODES = [
  { id: 1, http: 'a:1' },
  { id: 2, http: 'b:1' },
  { id: 3, http: 'c:1' },
];
const ORIGINS = [A, B, C];

function led(leaders: readonly number[], term = 1): LeadersReport {
  return { nodes: NODES, partitions: leaders.map((leader) => ({ leader, term })) };
}

/** A user of each of the three partitions. */
const USERS = [0, 1, 2].map((partition) => {
  for (let i = 0; ; i += 1) if (partitionOfSlot(keySlot(`user-${i}`), 3) === partition) return `user-${i}`;
});

/** Makes a client that knows the leaders. */
async function knowing(leaders: LeadersReport, options = {}): Promise<Played> {
  const played = new Played(options, leaders);
  watched(played.client.allow({ userId: 'first' }));
  await played.settle();
  played.last.answer(grantOf());
  await played.settle();
  played.sent.length = 0;
  return played;
}

it.each(['[::1]:1', '::1:1'])('a leader whose reported address is %s is asked there', async (http) => {
  const { nodes, partitions } = led([1, 1, 1]);
  const played = await knowing({ nodes: nodes.map((node) => ({ ...node, http })), partitions });
  watched(played.client.allow({ userId: 'ada' }));
  await played.settle();
  expect(played.last.origin).toBe('http://[::1]:1');
});

function receipt(partition: number, term: number): Record<string, unknown> {
  return grantOf({ decided: { partition, term, index: 1, timeMillis: 1 } });
}

function usersAt(sent: readonly Sent[]): Record<string, (string | undefined)[]> {
  return Object.fromEntries(
    sent.map(({ origin, requests }) => [origin, requests.map(({ userId }) => userId)]),
  );
}

describe('a client', () => {
  it('sends each request straight to its leader, in one batch per node', async () => {
    const played = await knowing(led([2, 2, 3]));
    for (const userId of USERS) watched(played.client.allow({ userId }));
    await played.settle();
    expect(usersAt(played.sent)).toEqual({ [B]: [USERS[0], USERS[1]], [C]: [USERS[2]] });
    expect(played.events.filter(({ type }) => type === 'sent').slice(-2)).toMatchObject([
      { node: B, requests: 2, straight: 2 },
      { node: C, requests: 1, straight: 1 },
    ]);
  });

  it('knows the leader of a user, named as a descriptor too', async () => {
    const played = await knowing(led([2, 2, 3]));
    for (const user of USERS) watched(played.client.allow({ descriptors: { user: user ?? '' } }));
    await played.settle();
    expect(played.sent.map(({ origin, requests }) => [origin, requests.length])).toEqual([
      [B, 2],
      [C, 1],
    ]);
  });

  it('sends to all nodes in turn if no node reports the leaders', async () => {
    const played = new Played();
    for (let i = 0; i < 6; i += 1) {
      watched(played.client.allow({ userId: `user-${i}` }));
      await played.settle();
      played.last.answer(grantOf());
      await played.settle();
    }
    expect(new Set(played.sent.map(({ origin }) => origin))).toEqual(new Set(ORIGINS));
    expect(played.leadersAsked).toBe(1);
  });

  it('does not ask who leads if an option forbids it', async () => {
    const played = new Played({ direct: false }, led([1, 1, 1]));
    for (let i = 0; i < 3; i += 1) {
      watched(played.client.allow({ userId: `user-${i}` }));
      await played.settle();
    }
    expect(played.leadersAsked).toBe(0);
    expect(new Set(played.sent.map(({ origin }) => origin))).toEqual(new Set(ORIGINS));
  });

  it('sends to another node when a leader is gone, also the requests that waited for it, and asks who leads now', async () => {
    const played = await knowing(led([2, 2, 2]), { batchesPerNodeMax: 1 });
    const asked = [watched(played.client.allow({ userId: 'user-1' }))];
    await played.settle();
    asked.push(watched(played.client.allow({ userId: 'user-2' })));
    await played.settle();
    expect(played.sent.map(({ origin }) => origin)).toEqual([B]);
    played.leaders = led([3, 3, 3], 2);
    played.last.fail(false);
    await played.settle();
    expect(played.last.origin).not.toBe(B);
    expect(played.last.requests.map(({ userId }) => userId)).toEqual(['user-2']);
    await played.pass(300);
    for (const sent of played.sent) if (sent.isOpen) sent.answer(grantOf());
    await played.pass(300);
    expect(asked.map(({ value }) => value?.allowed)).toEqual([true, true]);
    watched(played.client.allow({ userId: 'user-3' }));
    await played.settle();
    watched(played.client.allow({ userId: 'user-3' }));
    await played.settle();
    expect(played.last.origin).toBe(C);
  });

  it('asks who leads again when a decision was made in a later term', async () => {
    const played = await knowing(led([1, 1, 1]));
    await played.pass(200);
    expect(played.leadersAsked).toBe(1);
    const [userId = ''] = USERS;
    watched(played.client.allow({ userId }));
    await played.settle();
    played.leaders = led([2, 1, 1], 5);
    played.last.answer(receipt(0, 5));
    await played.settle();
    expect(played.leadersAsked).toBe(2);
    watched(played.client.allow({ userId }));
    await played.settle();
    expect(played.last.origin).toBe(B);
  });

  it('asks who leads again if there was no leader, but only a few times a second', async () => {
    const played = await knowing(led([1, 1, 1]));
    await played.pass(200);
    watched(played.client.allow({ userId: 'ada' }));
    for (let i = 0; i < 50; i += 1) {
      await played.pass(20);
      if (played.sent.at(-1)?.isOpen === true) played.last.answer(unavailableOf('no_leader', false));
    }
    expect(played.leadersAsked).toBeGreaterThan(2);
    expect(played.leadersAsked).toBeLessThan(20);
  });

  it('avoids a node that accepts no requests, and later sends to it again', async () => {
    const played = await knowing(led([1, 1, 1]));
    watched(played.client.allow({ userId: 'ada' }));
    await played.settle();
    expect(played.last.origin).toBe(A);
    played.last.respond(503, unavailableOf('draining', false));
    await played.pass(100);
    expect(played.last.origin).not.toBe(A);
    played.last.answer(grantOf());
    await played.pass(1_000);
    watched(played.client.allow({ userId: 'ada' }));
    await played.settle();
    expect(played.last.origin).toBe(A);
  });

  it('remembers which partition decided a set of descriptors', async () => {
    const played = await knowing(led([1, 2, 3]));
    const request = { descriptors: { ip: '10.1.2.3', endpoint: '/' } };
    watched(played.client.allow(request));
    await played.settle();
    played.last.answer(receipt(2, 1));
    await played.settle();
    for (let i = 0; i < 3; i += 1) {
      watched(played.client.allow({ descriptors: { endpoint: '/', ip: '10.1.2.3' } }));
      await played.settle();
      expect(played.last.origin).toBe(C);
      played.last.answer(receipt(2, 1));
      await played.settle();
    }
  });

  it('sends to a leader with an IPv6 address', async () => {
    const nodes = [{ id: 1, http: '::1:8101' }];
    const played = await knowing({ nodes, partitions: [{ leader: 1, term: 1 }] });
    watched(played.client.allow({ userId: 'ada' }));
    await played.settle();
    expect(played.last.origin).toBe('http://[::1]:8101');
  });

  it('uses TLS for the leaders that the cluster reports, too', async () => {
    const played = await knowing(led([2, 2, 2]), { nodes: ['https://a:1'], token: 'qt_secret' });
    watched(played.client.allow({ userId: 'ada' }));
    await played.settle();
    expect(played.last.origin).toBe('https://b:1');
  });

  it('ignores a report that it cannot read', async () => {
    const played = new Played({ nodes: [A] }, { nodes: NODES, partitions: [] });
    watched(played.client.allow({ userId: 'ada' }));
    await played.settle();
    watched(played.client.allow({ userId: 'bob' }));
    await played.settle();
    expect(played.sent.map(({ origin }) => origin)).toEqual([A, A]);
  });
});
