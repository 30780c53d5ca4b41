/** The audit log names the caller and the change, and contains no secrets and no user ids. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Listener } from './fixtures.ts';

const TOKEN = 'qt_abcdefgh_of-256-random-bits';
let listener = new Listener();
beforeEach(() => {
  listener = new Listener();
});
afterEach(async () => listener.app.close());

async function change(route: string, body?: unknown, token?: string): Promise<Record<string, unknown>[]> {
  const [method = '', url = ''] = route.split(' ');
  await listener.app.inject({
    method: method as 'PUT',
    url,
    headers: {
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
    },
    ...(body !== undefined && { payload: JSON.stringify(body) }),
  });
  return listener.logged.map((line) => JSON.parse(line) as Record<string, unknown>);
}

describe('the audit log', () => {
  it.each<[string, unknown, Record<string, unknown>]>([
    ['POST /v1/cluster/nodes', { remove: 2 }, { action: 'nodes.change', change: { remove: 2 } }],
    ['PUT /v1/cluster/nodes/2/drain', undefined, { action: 'nodes.drain', node: 2, isDraining: true }],
    ['DELETE /v1/cluster/nodes/2/drain', undefined, { action: 'nodes.drain', isDraining: false }],
    ['PUT /v1/cluster/nodes/2/labels', { zone: 'a' }, { action: 'nodes.label', node: 2, zone: 'a' }],
    ['PUT /v1/cluster/version', { version: 1 }, { action: 'cluster.upgrade', version: 1 }],
    ['PUT /v1/rules', { rules: [] }, { action: 'rules.put', version: 8 }],
    ['PUT /v1/rules/a/b', {}, { action: 'rules.put', rule: 'a/b' }],
    ['DELETE /v1/rules/a', undefined, { action: 'rules.delete', rule: 'a' }],
    ['PUT /v1/customers/ada', {}, { action: 'customer.put', customer: expect.any(String) }],
    ['DELETE /v1/customers/ada', undefined, { action: 'customer.delete' }],
    ['PUT /v1/users/ada/block', undefined, { action: 'user.block', user: expect.any(String) }],
    ['DELETE /v1/users/ada/block', undefined, { action: 'user.unblock' }],
    ['POST /v1/users/ada/reset', undefined, { action: 'user.reset' }],
    ['PUT /v1/users/ada/used', { rule: 'a', used: 3 }, { action: 'user.set', rule: 'a', used: 3 }],
    ['POST /v1/tokens', { role: 'read', name: 'n' }, { action: 'tokens.create', role: 'read', name: 'n' }],
    ['DELETE /v1/tokens/abcdefgh', undefined, { action: 'tokens.revoke', token: 'abcdefgh' }],
  ])('has a line for %s, with the caller', async (route, body, line) => {
    const local = await change(route, body);
    expect(local).toMatchObject([{ audit: true, by: 'local', status: expect.any(Number), ...line }]);
    listener.access.close();
    const [, byToken] = await change(route, body, 'admin-token');
    expect(byToken).toMatchObject({ audit: true, by: 'idadmin', ...line });
    expect(listener.logged.join('')).not.toMatch(/"ada"|admin-token/);
  });

  it.each([
    ['unknownNode', 'asked for by an operator: refused'],
    ['unknownOutcome', 'asked for by an operator: failed, or it is not known whether it was done'],
  ] as const)('does not say of a change that failed with %s that it was made', async (reason, msg) => {
    listener.changed = { ok: false, reason };
    expect(await change('PUT /v1/cluster/nodes/9/drain')).toMatchObject([{ reason, msg }]);
  });

  it('never contains a token that was created', async () => {
    const info = { id: 'abcdefgh', role: 'read', name: 'n' } as const;
    listener.changed = { ok: true, version: 1, pending: [], made: { info, token: TOKEN } };
    const lines = await change('POST /v1/tokens', { role: 'read', name: 'n' });
    expect(lines).toMatchObject([{ action: 'tokens.create', token: 'abcdefgh', status: 201 }]);
    expect(listener.logged.join('')).not.toContain('random-bits');
  });
});
