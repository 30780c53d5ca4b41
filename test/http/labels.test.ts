/** `PUT /v1/cluster/nodes/{id}/labels`: the change that is made, and every refusal with its reason. */
import { afterEach, describe, expect, it } from 'vitest';
import { Listener } from './fixtures.ts';

let listener = new Listener();
afterEach(async () => {
  await listener.app.close();
  listener = new Listener();
});

async function ask(
  body: unknown,
  {
    id = '2',
    method = 'PUT',
    ...from
  }: { id?: string; method?: 'PUT' | 'POST'; token?: string; remoteAddress?: string } = {},
): Promise<{ status: number; body: unknown; headers: Readonly<Record<string, unknown>> }> {
  const { remoteAddress = '127.0.0.1', token } = from;
  const response = await listener.app.inject({
    method,
    url: `/v1/cluster/nodes/${id}/labels`,
    headers: {
      'content-type': 'application/json',
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
    },
    payload: JSON.stringify(body),
    remoteAddress,
  });
  return { status: response.statusCode, body: response.json(), headers: response.headers };
}

describe('labelling a node over HTTP', () => {
  it.each([{ zone: 'eu-1a' }, { host: 'm.7_x' }, { zone: null, host: 'm' }])(
    'is passed on: %j',
    async (labels) => {
      expect(await ask(labels)).toMatchObject({ status: 200, body: { node: 2, version: 3 } });
      expect(listener.changesOf('label')).toEqual([{ node: 2, ...labels }]);
      expect(listener.logged.join('')).toContain('"action":"nodes.label"');
    },
  );

  it.each([
    ['zone', {}],
    ['zone', { zone: '' }],
    ['zone', { zone: 'a b' }],
    ['zone', { zone: '-a' }],
    ['zone', { zone: 'a'.repeat(129) }],
    ['host', { host: 7 }],
    ['rack', { rack: 'a' }],
    ['body', []],
  ])('is refused with the field and its bound: %s of %j', async (field, body) => {
    const reported = await ask(body);
    expect(reported).toMatchObject({ status: 400, body: { error: { field } } });
    expect(listener.changesOf('label')).toEqual([]);
  });

  it.each(['0', '-1', '1.5', 'x', '99999999999'])('needs the id of a node, not %s', async (id) => {
    expect((await ask({ zone: 'a' }, { id })).status).toBe(400);
  });

  it('has only this method', async () => {
    expect(await ask({}, { method: 'POST' })).toMatchObject({ status: 405, headers: { allow: 'PUT' } });
  });
});
