/**
 * Every change of the cluster over HTTP: the callers that may make it, and its results. Refusals are alike on all
 * routes.
 */
import { afterEach, describe, expect, it } from 'vitest';
import { CHANGE_FAILURES, type ChangeFailure, type ClusterChange } from '../../src/api/cluster-change.ts';
import { Listener } from './fixtures.ts';

let listener = new Listener();
afterEach(async () => {
  await listener.app.close();
  listener = new Listener();
});

type Method = 'PUT' | 'POST' | 'DELETE';
const rules = [{ id: 'a', limit: 1, windowMillis: 1_000 }];
const token = { role: 'read', name: 'n' };
const ROUTES: readonly [ClusterChange['type'], Method, string, (object | undefined)?][] = [
  ['nodes', 'POST', '/v1/cluster/nodes', { remove: 2 }],
  ['drain', 'PUT', '/v1/cluster/nodes/2/drain'],
  ['drain', 'DELETE', '/v1/cluster/nodes/2/drain'],
  ['label', 'PUT', '/v1/cluster/nodes/2/labels', { zone: 'a' }],
  ['upgrade', 'PUT', '/v1/cluster/version', { version: 1 }],
  ['rules', 'PUT', '/v1/rules', { rules }],
  ['rules', 'PUT', '/v1/rules/a', { limit: 1, windowMillis: 1_000 }],
  ['rules', 'DELETE', '/v1/rules/a'],
  ['tokens', 'POST', '/v1/tokens', token],
  ['tokens', 'DELETE', '/v1/tokens/abcdefgh'],
];
const REASONS = (Object.keys(CHANGE_FAILURES) as ChangeFailure[]).filter((reason) => reason !== 'invalid');

async function ask(
  method: Method,
  url: string,
  payload: object | undefined,
  { remoteAddress = '127.0.0.1', shown }: { remoteAddress?: string; shown?: string } = {},
): Promise<{ status: number; body: unknown; headers: Readonly<Record<string, unknown>> }> {
  const headers = shown === undefined ? {} : { authorization: `Bearer ${shown}` };
  const request = { method, url, headers, remoteAddress, ...(payload && { payload }) };
  const response = await listener.app.inject(request);
  return { status: response.statusCode, body: response.json(), headers: response.headers };
}

describe.each(ROUTES)('a change (%s) by %s %s', (type, method, url, payload) => {
  it('is passed on once', async () => {
    expect((await ask(method, url, payload)).status).toBeLessThan(300);
    expect(listener.changes).toMatchObject([{ type }]);
  });

  it('is refused with its reason, status and text, and with a retry time if a repetition may help', async () => {
    for (const reason of REASONS) {
      listener.changed = { ok: false, reason };
      const { status, body, headers } = await ask(method, url, payload);
      expect([status, body]).toEqual([
        CHANGE_FAILURES[reason].status,
        { reason, message: CHANGE_FAILURES[reason].text },
      ]);
      expect(headers['retry-after']).toBe(status === 503 ? '1' : undefined);
    }
  });

  it('is refused with a specific message if there is one, and with the field or nodes that it is about', async () => {
    listener.changed = { ok: false, reason: 'tooFewUndrained', message: 'one of three' };
    expect((await ask(method, url, payload)).body).toEqual({
      reason: 'tooFewUndrained',
      message: 'one of three',
    });
    const behind = [{ node: 2, speaks: 12 }, { node: 3 }];
    listener.changed = { ok: false, reason: 'nodesBehind', behind };
    expect((await ask(method, url, payload)).body).toMatchObject({ reason: 'nodesBehind', behind });
    listener.changed = { ok: false, reason: 'invalid', field: 'a.b', message: 'a.b must be more' };
    expect(await ask(method, url, payload)).toMatchObject({
      status: 400,
      body: { error: { type: 'invalid_request', field: 'a.b', message: 'a.b must be more' } },
    });
  });

  it('is refused from other machines in an open cluster, and without a token of role admin in a closed one', async () => {
    expect((await ask(method, url, payload, { remoteAddress: '10.0.0.7' })).status).toBe(403);
    listener.access.close();
    expect((await ask(method, url, payload)).status).toBe(401);
    expect((await ask(method, url, payload, { shown: 'read-token' })).status).toBe(403);
    expect(listener.changes).toEqual([]);
    const admin = { shown: 'admin-token', remoteAddress: '10.0.0.7' };
    expect((await ask(method, url, payload, admin)).status).toBeLessThan(300);
  });
});
