/** `PUT` and `DELETE /v1/cluster/nodes/{id}/drain`: the change that is made, and every refusal with its reason. */
import { afterEach, describe, expect, it } from 'vitest';
import { Listener } from './fixtures.ts';

let listener = new Listener();
afterEach(async () => {
  await listener.app.close();
  listener = new Listener();
});

async function ask(
  method: 'PUT' | 'DELETE' | 'POST',
  id: string,
  { remoteAddress = '127.0.0.1', token }: { remoteAddress?: string; token?: string } = {},
): Promise<{ status: number; body: unknown; headers: Readonly<Record<string, unknown>> }> {
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const url = `/v1/cluster/nodes/${id}/drain`;
  const response = await listener.app.inject({ method, url, headers, remoteAddress });
  return { status: response.statusCode, body: response.json(), headers: response.headers };
}

describe('draining a node over HTTP', () => {
  it.each([
    ['PUT', true],
    ['DELETE', false],
  ] as const)('is passed on: %s', async (method, isDraining) => {
    expect(await ask(method, '2')).toMatchObject({ status: 200, body: { node: 2, draining: isDraining } });
    expect(listener.changesOf('drain')).toEqual([{ node: 2, isDraining }]);
    expect(listener.logged.join('')).toContain('"action":"nodes.drain"');
  });

  it.each(['0', '-1', '1.5', 'x', '%20', '99999999999'])('needs the id of a node, not %s', async (id) => {
    expect((await ask('PUT', id)).status).toBe(400);
    expect(listener.changesOf('drain')).toEqual([]);
  });

  it('has only these two methods', async () => {
    const { status, headers } = await ask('POST', '2');
    expect([status, headers['allow']]).toEqual([405, 'PUT, DELETE']);
  });
});
