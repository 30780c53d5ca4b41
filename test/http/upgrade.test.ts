/** `PUT /v1/cluster/version`: the change that is made, and every refusal with its reason. */
import { afterEach, describe, expect, it } from 'vitest';
import { Listener } from './fixtures.ts';

let listener = new Listener();
afterEach(async () => {
  await listener.app.close();
  listener = new Listener();
});

async function ask(
  payload: object,
  { remoteAddress = '127.0.0.1', token }: { remoteAddress?: string; token?: string } = {},
): Promise<{ status: number; body: unknown; headers: Readonly<Record<string, unknown>> }> {
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const request = { method: 'PUT', url: '/v1/cluster/version', headers, remoteAddress, payload } as const;
  const response = await listener.app.inject(request);
  return { status: response.statusCode, body: response.json(), headers: response.headers };
}

describe('raising the version of a cluster over HTTP', () => {
  it('is passed on, and audited', async () => {
    expect(await ask({ version: 1 })).toMatchObject({ status: 200, body: { version: 1 } });
    expect(listener.changesOf('upgrade')).toEqual([{ version: 1 }]);
    expect(listener.logged.join('')).toMatch(
      /"audit":true,"by":"local","action":"cluster.upgrade","version":1/,
    );
  });

  it.each([
    {},
    { version: 0 },
    { version: 2 },
    { version: '1' },
    { version: null },
    { version: 1, node: 1 },
    [1],
  ])('accepts a version that the node supports, not %j', async (payload) => {
    expect(await ask(payload)).toMatchObject({ status: 400 });
    expect(listener.changesOf('upgrade')).toEqual([]);
  });

  it('names the field and its bound', async () => {
    const { body } = await ask({ version: 2 });
    expect(JSON.stringify(body)).toContain('version must be a version that this node speaks: 1');
  });
});
