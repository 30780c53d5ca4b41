/** Attacks on the HTTP listener with wrong credentials, and with valid ones of a role too low. */
import type { Attack, Outcome } from './attack.ts';
import { sayOnce } from './sockets.ts';
import type { Answer, Target } from './target.ts';

/** Whether the answer closes the connection. */
const QUIET_MILLIS = 5_000;

interface Wanted {
  readonly method: string;
  readonly path: string;
  readonly body?: unknown;
}

const DECIDING: readonly Wanted[] = [
  { method: 'POST', path: '/v1/allow', body: { userId: 'eve' } },
  { method: 'POST', path: '/v1/allow/batch', body: { requests: [{ userId: 'eve' }] } },
  {
    method: 'POST',
    path: '/json',
    body: { domain: 'd', descriptors: [{ entries: [{ key: 'k', value: 'v' }] }] },
  },
  { method: 'POST', path: '/v1/refunds', body: { descriptors: {}, requestId: 'a' } },
  { method: 'POST', path: '/v1/users/eve/refunds', body: { requestId: 'a' } },
];
const READING: readonly Wanted[] = [
  { method: 'GET', path: '/v1/cluster' },
  { method: 'GET', path: '/metrics' },
  { method: 'GET', path: '/v1/rules' },
  { method: 'GET', path: '/v1/rules/default' },
  { method: 'GET', path: '/v1/usage' },
  { method: 'GET', path: '/v1/customers/ada' },
];
/** Also refused with a token of role decide. */
const USER_READING: readonly Wanted[] = [{ method: 'GET', path: '/v1/users/ada' }];
const RULE = { id: 'default', limit: 9, windowMillis: 1_000, clock: 'cluster' };
const CHANGING: readonly Wanted[] = [
  { method: 'PUT', path: '/v1/rules', body: { rules: [RULE] } },
  { method: 'PUT', path: '/v1/rules/default', body: RULE },
  { method: 'DELETE', path: '/v1/rules/default' },
  { method: 'PUT', path: '/v1/customers/eve', body: { tier: 'gold' } },
  { method: 'DELETE', path: '/v1/customers/eve' },
  { method: 'PUT', path: '/v1/users/ada/block' },
  { method: 'DELETE', path: '/v1/users/ada/block' },
  { method: 'POST', path: '/v1/users/eve/reset' },
  { method: 'GET', path: '/v1/tokens' },
  { method: 'POST', path: '/v1/tokens', body: { role: 'admin', name: 'eve' } },
  { method: 'DELETE', path: '/v1/tokens/abcdefgh' },
  {
    method: 'POST',
    path: '/v1/cluster/nodes',
    body: { add: { id: 66, http: { host: '127.0.0.66', port: 1 }, peer: { host: '127.0.0.66', port: 2 } } },
  },
  { method: 'POST', path: '/v1/cluster/nodes', body: { remove: 3 } },
];
const EVERYTHING = [...DECIDING, ...READING, ...USER_READING, ...CHANGING];

/** The answer must say nothing except that a token, or another one, is needed. */
function isRefused({ status }: Answer): boolean {
  return status === 401 || status === 403 || status === 421;
}

async function tryAll(
  target: Target,
  wanted: readonly Wanted[],
  headers: readonly Readonly<Record<string, string>>[],
): Promise<Outcome> {
  const gotIn: string[] = [];
  let tries = 0;
  for (const [i, each] of headers.entries()) {
    for (const { method, path, body } of wanted) {
      const id = 1 + (tries % target.cluster.ids.length);
      const asked = { headers: each, ...(body !== undefined && { body }) };
      const answer = await target.ask(id, method, path, asked);
      tries += 1;
      if (!isRefused(answer)) gotIn.push(`headers ${i}: ${method} ${path}: ${answer.status}`);
    }
  }
  return { tries, gotIn };
}

function bearer(token: string): Readonly<Record<string, string>> {
  return { authorization: `Bearer ${token}` };
}

export const HTTP_CREDENTIALS: readonly Attack[] = [
  {
    name: 'no token, at every route, and as a page, a proxy and a foreign host name',
    listener: 'http',
    run: async (target) =>
      tryAll(target, EVERYTHING, [
        {},
        { origin: 'https://evil.example' },
        { host: 'evil.example' },
        { 'x-forwarded-for': '127.0.0.1', forwarded: 'for=127.0.0.1' },
        { 'x-http-method-override': 'GET', 'x-original-url': '/healthz', 'x-rewrite-url': '/healthz' },
        { cookie: `token=${target.tokens.admin}` },
      ]),
  },
  {
    name: 'wrong tokens: revoked, cut, longer, in other schemes and places',
    listener: 'http',
    run: async (target) => {
      const { admin, revoked } = target.tokens;
      return tryAll(target, EVERYTHING, [
        bearer(revoked),
        bearer(admin.slice(0, -1)),
        bearer(`${admin}a`),
        bearer(admin.toUpperCase()),
        bearer(`${admin.slice(0, 12)}${'A'.repeat(admin.length - 12)}`),
        bearer('qt_'),
        bearer('__proto__'),
        bearer('constructor'),
        { authorization: admin },
        { authorization: 'Bearer' },
        { authorization: `Basic ${Buffer.from(`default:${admin}`).toString('base64')}` },
        { 'x-api-key': admin, 'proxy-authorization': `Bearer ${admin}` },
      ]);
    },
  },
  {
    name: 'tokens in the query and in the path',
    listener: 'http',
    run: async (target) => {
      const { admin } = target.tokens;
      const twisted = EVERYTHING.flatMap(({ method, path }) =>
        [
          `${path}?token=${admin}&access_token=${admin}`,
          `/${path}`,
          `${path}/../../healthz/../..${path}`,
          `/healthz/..${path}`,
          path.replace('/v1', '/%76%31'),
          path.toUpperCase(),
          `http://127.0.0.1${path}`,
          `${path};/healthz`,
        ].map((twist) => `${method} ${twist}`),
      );
      const gotIn: string[] = [];
      for (const line of twisted) {
        const bytes = `${line} HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`;
        const { heard } = await sayOnce(target.address(3, 'http'), bytes, { quietMillis: QUIET_MILLIS });
        if (/HTTP\/1\.1 [25]/.test(heard)) gotIn.push(`${line}: ${heard.slice(0, 12)}`);
      }
      return { tries: twisted.length, gotIn };
    },
  },
  {
    name: 'a token to decide, used to read and to change',
    listener: 'http',
    run: async (target) => tryAll(target, [...READING, ...CHANGING], [bearer(target.tokens.decide)]),
  },
  {
    name: 'a token to read, used to decide and to change',
    listener: 'http',
    run: async (target) => tryAll(target, [...DECIDING, ...CHANGING], [bearer(target.tokens.read)]),
  },
];
