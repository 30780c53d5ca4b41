/** `POST /v1/cluster/nodes`: only from loopback; every refusal with its reason. */
import { afterEach, describe, expect, it } from 'vitest';
import { isLocal } from '../../src/http/local-callers.ts';
import { Listener } from './fixtures.ts';

let listener = new Listener();
const node = { id: 4, http: { host: '127.0.0.1', port: 8_104 }, peer: { host: '127.0.0.1', port: 9_104 } };

afterEach(async () => {
  await listener.app.close();
  listener = new Listener();
});

async function post(
  payload: unknown,
  remoteAddress = '127.0.0.1',
  headers: Readonly<Record<string, string>> = {},
): Promise<{ status: number; body: unknown }> {
  const response = await listener.app.inject({
    method: 'POST',
    url: '/v1/cluster/nodes',
    headers: { 'content-type': 'application/json', ...headers },
    payload: JSON.stringify(payload),
    remoteAddress,
  });
  return { status: response.statusCode, body: response.json() };
}

describe('changes of the nodes over HTTP', () => {
  it.each([[{ add: node }], [{ remove: 2 }], [{ add: node, remove: 2 }]])(
    'are passed on: %j',
    async (change) => {
      expect(await post(change)).toEqual({ status: 200, body: { version: 2 } });
      expect(listener.changes).toEqual([{ type: 'nodes', change }]);
    },
  );

  it.each(['10.0.0.7', '192.168.1.1', '::2'])('are refused from %s', async (address) => {
    expect((await post({ remove: 2 }, address)).status).toBe(403);
    expect(listener.changes).toEqual([]);
  });

  it.each(['127.0.0.1', '127.1.2.3', '::1', '::ffff:127.0.0.1'])('are accepted from %s', async (address) => {
    expect((await post({ remove: 2 }, address)).status).toBe(200);
  });

  it.each([
    ['10.0.0.4', '10.0.0.4', true],
    ['fd00::4', 'fd00::4', true],
    ['10.0.0.5', '10.0.0.4', false],
    [undefined, undefined, false],
  ])('come from the same machine: from %s to %s is %j', (remoteAddress, localAddress, expected) => {
    expect(isLocal({ remoteAddress, localAddress }, {})).toBe(expected);
  });

  it.each([
    [
      'a page of another name for loopback',
      { origin: 'http://evil.example:8101', host: 'evil.example:8101' },
    ],
    ['a page without an origin', { origin: 'null' }],
    ['a proxy', { 'x-forwarded-for': '203.0.113.9' }],
    ['a proxy with the standard header', { forwarded: 'for=203.0.113.9' }],
  ])('are refused from %s', async (_who, headers) => {
    expect((await post({ remove: 2 }, '127.0.0.1', headers)).status).toBe(403);
    expect(listener.changes).toEqual([]);
  });

  it.each([
    undefined,
    'text/plain',
    'text/plain;application/json',
    'text/plain; charset=application/json',
    'multipart/form-data; boundary=application/json',
    'application/x-www-form-urlencoded',
  ])('are refused with a type that a browser sends without a preflight: %s', async (type) => {
    const response = await listener.app.inject({
      method: 'POST',
      url: '/v1/cluster/nodes',
      headers: type === undefined ? {} : { 'content-type': type },
      payload: '{"remove":2}',
    });
    expect(response.statusCode).toBe(415);
    expect(listener.changes).toEqual([]);
  });

  it.each<[string, unknown]>([
    ['body', {}],
    ['body', []],
    ['remove', { remove: 0 }],
    ['remove', { remove: '2' }],
    ['add.id', { add: { ...node, id: 0 } }],
    ['add.http.port', { add: { ...node, http: { host: 'h', port: 70_000 } } }],
    ['add.http.port', { add: { ...node, http: { host: 'h', port: 0 } } }],
    ['add.resp', { add: { ...node, resp: { host: 'h', port: 7 } } }],
    ['add.peer.host', { add: { ...node, peer: { host: 'a\r\nset-cookie: b', port: 1 } } }],
    ['add.peer.host', { add: { ...node, peer: { host: 'h/x', port: 1 } } }],
    ['add.peer', { add: { id: 4, http: node.http } }],
    ['force', { remove: 2, force: true }],
  ])('name the field %s if it is wrong: %j', async (field, payload) => {
    const { status, body } = await post(payload);
    expect(status).toBe(400);
    expect(JSON.stringify(body)).toContain(field);
    expect(listener.changes).toEqual([]);
  });
});
