/** Tokens over HTTP: the role for each route, refusals, and how tokens are created and revoked. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Role, ROLES } from '../../src/api/token.ts';
import { FAILURES_MAX } from '../../src/http/callers.ts';
import { EVENTS } from '../../src/http/events-route.ts';
import { rolesOf, ROUTE_ROLES } from '../../src/http/route-roles.ts';
import { denialOf, Listener } from './fixtures.ts';

const INFO = { id: 'abcdefgh', role: 'read', name: 'grafana', createdMillis: 7 } as const;
let listener = new Listener();

beforeEach(() => {
  listener = new Listener();
});
afterEach(async () => listener.app.close());

interface Asked {
  readonly token?: string;
  readonly body?: unknown;
  readonly remoteAddress?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

async function ask(
  route: string,
  { token, body, remoteAddress = '10.0.0.7', headers = {} }: Asked = {},
): Promise<{
  status: number;
  headers: Record<string, unknown>;
  said: string;
  body: Record<string, unknown>;
}> {
  const [method = '', path = ''] = route.split(' ');
  const response = await listener.app.inject({
    method: method as 'GET',
    url: path.replace(/:\w+/, 'abcdefgh').replace('*', 'some'),
    headers: {
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { payload: JSON.stringify(body) }),
    remoteAddress,
  });
  const text = response.headers['content-type']?.toString().startsWith('application/') ? response.body : '{}';
  return {
    status: response.statusCode,
    headers: response.headers,
    said: response.body,
    body: JSON.parse(text) as Record<string, unknown>,
  };
}

describe('the roles of routes', () => {
  it('name every route of the server, and no other', async () => {
    await listener.app.ready();
    const routes: string[] = [];
    // As a tree: `├── allow (POST)` below its path.
    const path: string[] = [];
    for (const line of listener.app.printRoutes({ commonPrefix: false }).split('\n')) {
      const [, indent = '', part, methods] = /^(.*?)[├└]── (\S+)(?: \((.*)\))?$/.exec(line) ?? [];
      if (part === undefined) continue;
      path.length = indent.length / 4;
      path.push(part);
      for (const method of methods?.split(', ') ?? [])
        if (method !== 'HEAD') routes.push(`${method} ${path.join('').replace(/\b\*$/, '/*')}`);
    }
    expect(routes.length).toBeGreaterThan(20);
    expect(routes.sort()).toEqual(Object.keys(ROUTE_ROLES).sort());
  });

  it('allow only admin on routes that they do not name', () => {
    expect(rolesOf('POST', '/v1/new')).toEqual(['admin']);
    expect(rolesOf('HEAD', '/v1/cluster')).toEqual(['read', 'admin']);
  });
});

describe('a closed cluster', () => {
  beforeEach(() => listener.access.close());

  it.each(Object.keys(ROUTE_ROLES))('accepts only the roles of a route: %s', async (route) => {
    const [method = '', url] = route.split(' ');
    // Otherwise its answer would never end.
    if (url === EVENTS) listener.readiness = { status: 'stopping' };
    const roles = rolesOf(method, url);
    const isFor = (role: Role): boolean => roles === 'anybody' || roles.includes(role);
    // Some routes are only for programs on the node's own machine, with any token: see debug.test.ts.
    const remoteAddress = url?.startsWith('/v1/debug/') === true ? '127.0.0.1' : '10.0.0.7';
    const byRole = await Promise.all(
      ROLES.map(async (role) => ask(route, { token: `${role}-token`, remoteAddress })),
    );
    expect(byRole.map(({ status }) => status === 403)).toEqual(ROLES.map((role) => !isFor(role)));
    expect(byRole.map(({ status }) => status)).not.toContain(401);
    const needed = roles === 'anybody' ? '' : roles.join(' or ');
    const refused = byRole.filter(({ status }) => status === 403).map(({ said }) => said);
    expect(refused.filter((text) => !text.includes(needed))).toEqual([]);
    const { status } = await ask(route, { remoteAddress: '127.0.0.1' });
    expect(status === 401).toBe(roles !== 'anybody');
  });

  it('gives the same answer to a missing, a wrong and a malformed token, and never grants', async () => {
    const answers = await Promise.all(
      [
        {},
        { token: 'wrong' },
        { headers: { authorization: 'Basic YTpi' } },
        { headers: { authorization: 'Bearer' } },
      ].map(async (asked) => ask('POST /v1/allow', { body: { userId: 'ada' }, ...asked })),
    );
    for (const { status, headers, body } of answers) {
      expect([status, headers['www-authenticate'], body]).toEqual([401, 'Bearer', answers[0]?.body]);
      expect(body['allowed']).toBe(false);
    }
    expect(listener.asked).toEqual([]);
    expect(listener.observed.map(({ status }) => status)).toEqual([401, 401, 401, 401]);
    expect(listener.access.failures).toBe(1);
  });

  it('names the role of the token as the reason in a header, because a blocked key is 403 as well', async () => {
    const asked = { token: 'read-token', body: { userId: 'ada' } };
    const { status, headers, body } = await ask('POST /v1/allow', asked);
    expect([status, headers['www-authenticate']]).toEqual([403, 'Bearer error="insufficient_scope"']);
    expect(body).toMatchObject({ allowed: false, error: { type: 'forbidden' } });
    listener.answer = { kind: 'decision', decision: denialOf({ isBlocked: true }) };
    const blocked = await ask('POST /v1/allow', { ...asked, token: 'decide-token' });
    expect([blocked.status, blocked.headers['www-authenticate']]).toEqual([403, undefined]);
  });

  it('answers 503 while the node does not know which tokens are valid', async () => {
    listener.access.now = 'unknown';
    const { status, headers, body } = await ask('POST /v1/allow', {
      token: 'admin-token',
      body: { userId: 'ada' },
    });
    expect([status, headers['retry-after'], headers['content-type']]).toEqual([
      503,
      '1',
      'application/problem+json; charset=utf-8',
    ]);
    expect(body).toMatchObject({ status: 503, allowed: false, reason: 'starting', proposed: false });
    const { said } = await ask('POST /json', { token: 'admin-token', body: {} });
    expect(said).toContain('the node is starting');
  });

  it('does not reveal its routes to a caller without a token', async () => {
    expect((await ask('GET /v1/nothing')).status).toBe(401);
    expect((await ask('GET /v1/nothing', { token: 'decide-token' })).status).toBe(404);
  });

  it('accepts changes from anywhere with a token of role admin', async () => {
    const asked = { token: 'admin-token', body: { remove: 2 }, headers: { origin: 'http://console' } };
    expect((await ask('POST /v1/cluster/nodes', asked)).status).toBe(200);
    expect(listener.changesOf('nodes')).toEqual([{ remove: 2 }]);
  });

  it('refuses a token from the first request after it was revoked', async () => {
    expect((await ask('GET /v1/cluster', { token: 'read-token' })).status).toBe(200);
    listener.access.callers.delete('read-token');
    expect((await ask('GET /v1/cluster', { token: 'read-token' })).status).toBe(401);
  });

  it('closes a connection after several wrong tokens', async () => {
    const port = await listener.listen();
    const connections: (string | null)[] = [];
    const { Agent, get } = await import('node:http');
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    for (let i = 0; i < FAILURES_MAX; i += 1) {
      connections.push(
        await new Promise((resolve, reject) => {
          const headers = { authorization: 'Bearer wrong' };
          get({ port, host: '127.0.0.1', path: '/metrics', agent, headers }, (response) => {
            response.resume().on('end', () => resolve(response.headers.connection ?? null));
          }).on('error', reject);
        }),
      );
    }
    agent.destroy();
    expect(connections.map((each) => each === 'close')).toEqual([
      ...Array.from({ length: FAILURES_MAX - 1 }, () => false),
      true,
    ]);
  });

  it('answers every caller with 503 while the node does not know its tokens', async () => {
    listener.access.now = 'unknown';
    const { status, body } = await ask('POST /v1/allow', { token: 'admin-token', body: { userId: 'ada' } });
    expect([status, body['allowed']]).toEqual([503, false]);
    expect((await ask('GET /healthz')).status).toBe(200);
  });
});

describe('tokens', () => {
  const here = { remoteAddress: '127.0.0.1' };

  it('are created on the machine of a node while the cluster is open, and shown once', async () => {
    const asked = { role: 'read', name: 'grafana' };
    listener.changed = { ok: true, version: 1, pending: [3], made: { info: INFO, token: 'qt_x' } };
    expect((await ask('POST /v1/tokens', { body: asked })).status).toBe(403);
    const { status, headers, body } = await ask('POST /v1/tokens', { body: asked, ...here });
    expect([status, headers['cache-control'], body]).toEqual([
      201,
      'no-store',
      { ...INFO, token: 'qt_x', pending: [3] },
    ]);
    expect(listener.changes).toEqual([{ type: 'tokens', change: { create: asked } }]);
  });

  it.each([
    ['role', { role: 'root', name: 'n' }],
    ['role', { name: 'n' }],
    ['name', { role: 'read' }],
    ['name', { role: 'read', name: '' }],
    ['name', { role: 'read', name: 'é'.repeat(33) }],
    ['name', { role: 'read', name: 'a\nb' }],
    ['secret', { role: 'read', name: 'n', secret: 's' }],
  ])('are refused with the field %s: %j', async (field, asked) => {
    const { status, body } = await ask('POST /v1/tokens', { body: asked, ...here });
    expect([status, (body['error'] as { field: string }).field]).toEqual([400, field]);
    expect(listener.changes).toEqual([]);
  });

  it('are listed without secrets', async () => {
    listener.access.listed = [
      { ...INFO, isConfigured: false },
      { ...INFO, id: 'bbbbbbbb', isConfigured: true },
    ];
    expect((await ask('GET /v1/tokens', here)).body).toEqual({
      tokens: [INFO, { ...INFO, id: 'bbbbbbbb', configured: true }],
    });
  });

  it('are revoked, with 202 while some nodes may not know it yet', async () => {
    const route = 'DELETE /v1/tokens/abcdefgh';
    expect((await ask(route, here)).status).toBe(200);
    listener.changed = { ok: true, version: 1, pending: [2] };
    expect(await ask(`${route}?open=true`, here)).toMatchObject({
      status: 202,
      body: { id: 'abcdefgh', pending: [2] },
    });
    expect(listener.changesOf('tokens')).toEqual(
      [false, true].map((canOpen) => ({ revoke: 'abcdefgh', canOpen })),
    );
    expect((await ask(`${route}?open=yes`, here)).status).toBe(400);
    expect((await ask('DELETE /v1/tokens/no', here)).status).toBe(404);
  });
});
