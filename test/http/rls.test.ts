/** `POST /json`: the JSON form of Envoy's protocol. Only status 200 lets a request pass. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { UNAVAILABLE_REASONS } from '../../src/api/refusals.ts';
import { Listener } from './fixtures.ts';

const ASKED = { domain: 'edge', descriptors: [{ entries: [{ key: 'user', value: 'ada' }] }], hitsAddend: 2 };

interface Answered {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly text: string;
}

let listener: Listener;

beforeEach(() => {
  listener = new Listener();
});
afterEach(async () => {
  await listener.listener.close();
});

async function post(body: unknown, headers: Readonly<Record<string, string>> = {}): Promise<Answered> {
  const response = await listener.app.inject({
    method: 'POST',
    url: '/json',
    headers: { 'content-type': 'application/json', ...headers },
    payload: typeof body === 'string' ? body : JSON.stringify(body),
  });
  return { status: response.statusCode, headers: response.headers, text: response.body };
}

describe('a request of a gateway in JSON', () => {
  it('is 200 if it is granted', async () => {
    const { status, headers, text } = await post(ASKED);
    expect({ status, body: JSON.parse(text) as unknown }).toEqual({
      status: 200,
      body: { overallCode: 'OK', statuses: [{ code: 'OK' }] },
    });
    expect(headers['content-type']).toContain('application/json');
    expect(listener.listed).toEqual([
      { domain: 'edge', lists: [{ entries: [{ key: 'user', value: 'ada' }], cost: 2 }] },
    ]);
    expect(listener.observed).toMatchObject([{ status: 200 }]);
  });

  it('is 429 if it is denied, and the decision is counted', async () => {
    const decided = { kind: 'unlimited', rulesVersion: 7 } as const;
    const lists = [{ kind: 'limited', isOver: true, name: '' } as const];
    listener.listedAnswer = { kind: 'listed', allowed: false, lists, decided };
    const { status, text } = await post(ASKED);
    expect(status).toBe(429);
    expect(JSON.parse(text)).toEqual({ overallCode: 'OVER_LIMIT', statuses: [{ code: 'OVER_LIMIT' }] });
    expect(listener.reported).toMatchObject([{ request: { cost: 2 }, answer: decided }]);
  });

  it.each(UNAVAILABLE_REASONS)('is 503 if no node can decide it: %s', async (reason) => {
    listener.listedAnswer = { kind: 'unavailable', reason, proposed: true };
    const { status, headers, text } = await post(ASKED);
    expect(status).toBe(503);
    expect(text).toContain(reason);
    expect(headers['retry-after']).toBe('1');
    expect(headers['content-type']).toContain('text/plain');
  });

  it.each([
    ['no JSON', '{'],
    ['an unknown field', { ...ASKED, domian: 'edge' }],
    ['an empty domain', { ...ASKED, domain: '' }],
    ['no descriptors', { domain: 'edge' }],
  ])('is 400 in plain text with %s, and the node is not asked', async (_, body) => {
    const { status, headers, text } = await post(body);
    expect([status, headers['content-type']]).toEqual([400, 'text/plain; charset=utf-8']);
    expect(text).toMatch(/^\w[^{"]*$/);
    expect(listener.listed).toEqual([]);
  });

  it('is answered in plain text if it is refused before it is read, for any reason', async () => {
    const refused = [
      await post(ASKED, { 'content-type': 'text/yaml' }),
      await post(JSON.stringify({ ...ASKED, domain: 'd'.repeat(40_000) })),
    ];
    listener.shedding.refused = true;
    refused.push(await post(ASKED));
    listener.access.close();
    refused.push(await post(ASKED), await post(ASKED, { authorization: 'Bearer read-token' }));
    expect(refused.map(({ status }) => status)).toEqual([415, 413, 503, 401, 403]);
    for (const { headers, text } of refused) {
      expect(headers['content-type']).toBe('text/plain; charset=utf-8');
      expect(text).toMatch(/^\w[^{"]*$/);
    }
    expect(refused[2]?.headers['retry-after']).toBe('1');
    expect(refused[3]?.headers['www-authenticate']).toBeDefined();
  });

  it('is refused unread under load, and without a token of the role', async () => {
    listener.shedding.refused = true;
    expect((await post('{')).status).toBe(503);
    expect(listener.refusedUnread).toBe(1);
    listener.shedding.refused = new Set();
    listener.access.close();
    expect((await post(ASKED)).status).toBe(401);
    expect((await post(ASKED, { authorization: 'Bearer read-token' })).status).toBe(403);
    expect((await post(ASKED, { authorization: 'Bearer decide-token' })).status).toBe(200);
  });
});
