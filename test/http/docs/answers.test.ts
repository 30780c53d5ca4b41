/** The answers of the HTTP listener match docs/openapi.json, for success and for every kind of failure. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { NoBackup } from '../../../src/api/backup.ts';
import { CHANGE_FAILURES, type ChangeFailure } from '../../../src/api/cluster-change.ts';
import type { CustomerAnswer } from '../../../src/api/customer.ts';
import type { AskAnswer } from '../../../src/api/question.ts';
import type { RefundQuestionAnswer } from '../../../src/api/refund.ts';
import { UNAVAILABLE_REASONS } from '../../../src/api/refusals.ts';
import { USAGE_FAILURES } from '../../../src/api/usage.ts';
import { HTTP_SETTINGS_DEFAULTS } from '../../../src/config/http-settings.ts';
import { decisionOf, limitStatusOf } from '../../api/decision-of.ts';
import { denialOf, Listener, REPORT } from '../fixtures.ts';
import { operationOf, OPERATIONS, resolved, wrongInAnswer } from './described.ts';

const IN_PATHS: Readonly<Record<string, string>> = {
  ':userId': 'ada',
  ':key': 'user=ada',
  ':customerId': 'acme',
  ':nodeId': '2',
  ':tokenId': 'ab12cd34',
  ':group': '3',
  '*': 'default',
};
const RULES = {
  version: 1,
  rules: REPORT.rules?.rules ?? [],
  requestIdHorizonMillis: 1,
  clockDriftPpm: 500,
  partitionBytesMax: 4_096,
};
const COUNTS = { allowed: 1, denied: 2, unavailable: 3, degraded: 4, wouldAllow: 5, wouldDeny: 6 };
const COLUMNS = { allowed: [1], denied: [2], unavailable: [3], degraded: [4] };
const TOKEN = { id: 'ab12cd34', role: 'decide', name: 'gateway' } as const;
const DECIDED = { term: 2, index: 7, position: 1, timeMillis: 90 };
const REFUND = { refunded: true, ruleId: 'a', cost: 2, decided: DECIDED, rulesVersion: 7 };
/** The result of a change of any kind; each route uses some of its fields. */
const MADE = { ok: true, version: 8, pending: [], made: { info: TOKEN, token: 'qt_' } } as const;
const SNAPSHOT = { clusterId: 'c', partitions: 4, hash: 'h', group: 3, index: 7, term: 2, timeMillis: 90 };
/** A route whose answer never ends; `events.test.ts` tests it. */
const STREAM = 'GET /v1/events';
/** The reasons for which the cluster refuses a change of any kind. */
const COMMON = ['nodesBehind', 'notMember', 'overloaded', 'unknownOutcome', 'notLeader'] as const;
/** Further reasons, by route. */
const REFUSALS: Readonly<Record<string, readonly ChangeFailure[]>> = {
  'POST /v1/cluster/nodes': [
    'emptyChange',
    'unknownNode',
    'retiredNode',
    'nodeExists',
    'tooFewNodes',
    'tooManyNodes',
    'olderNode',
  ],
  'PUT /v1/cluster/nodes/:nodeId/drain': ['unknownNode', 'tooFewUndrained'],
  'DELETE /v1/cluster/nodes/:nodeId/drain': ['unknownNode', 'tooFewUndrained'],
  'PUT /v1/cluster/nodes/:nodeId/labels': ['unknownNode'],
  'PUT /v1/cluster/version': ['lowerVersion'],
  'PUT /v1/rules': ['rulesChanged'],
  'PUT /v1/rules/*': ['rulesChanged'],
  'DELETE /v1/rules/*': ['rulesChanged', 'unknownRule'],
  'POST /v1/tokens': ['tokenExists', 'tooManyTokens', 'lastAdmin', 'configuredToken'],
  'DELETE /v1/tokens/:tokenId': [
    'tokenExists',
    'tooManyTokens',
    'unknownToken',
    'lastAdmin',
    'configuredToken',
  ],
};
const CLOSED = [...OPERATIONS].filter(([, { security }]) => security === undefined).map(([route]) => route);
const EVERYTHING = [...OPERATIONS.keys()];
/** Routes for a key, which may be malformed. In a batch each answer has its own status. */
const OF_KEYS = EVERYTHING.filter((route) =>
  /(?:problem.json|plain)$/.test(Object.keys(operationOf(route).responses['503']?.content ?? {}).join()),
).filter((route) => operationOf(route).responses['400'] !== undefined && !route.endsWith('/batch'));

const FORWARDED = { 'x-user': 'ada', 'x-forwarded-method': 'GET', 'x-forwarded-uri': '/a' };

let listener: Listener;

/** The fake cluster can do everything. */
beforeEach(() => {
  listener = new Listener(undefined, { ...HTTP_SETTINGS_DEFAULTS, userHeader: 'x-user' });
  listener.rules = RULES;
  listener.changed = MADE;
  listener.access.listed = [{ ...TOKEN, isConfigured: true }];
  listener.usage = {
    ok: true,
    report: {
      minutes: 1,
      nodes: [1],
      silent: [2],
      rules: [{ rule: 'default', ...COUNTS }],
      history: { fromMillis: 0, ...COLUMNS },
      top: {
        fromMillis: 0,
        allowed: [{ rule: 'default', key: 'user=ada', count: 2, error: 0 }],
        denied: [],
      },
    },
  };
  const snapshot = { ...SNAPSHOT, chunkCount: 0, byteLength: 0 };
  listener.backup = { ok: true, backup: { snapshot, read: async () => undefined, close: () => {} } };
});
afterEach(() => listener.app.close());

interface Asked {
  readonly token?: string;
  readonly remoteAddress?: string;
  readonly body?: unknown;
  /** The query, with its question mark. */
  readonly query?: string;
}

/** Sends the body of the document's example, and checks the answer against the document. Returns the status. */
async function statusOf(
  route: string,
  { token, remoteAddress = '127.0.0.1', body, query = '' }: Asked = {},
): Promise<number> {
  const [method, path] = route.split(' ') as ['GET' | 'POST' | 'PUT' | 'DELETE', string];
  const url = `${path.replaceAll(/:\w+|\*/g, (name) => IN_PATHS[name] ?? name)}${query}`;
  const shown = operationOf(route).requestBody?.content['application/json']?.example;
  const payload = (body ?? shown) as object | undefined;
  const answer = await listener.app.inject({
    method,
    url,
    remoteAddress,
    headers: {
      ...(path === '/v1/forward-auth' && FORWARDED),
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
    },
    ...(payload !== undefined && { payload }),
  });
  expect(wrongInAnswer(route, answer)).toEqual([]);
  return answer.statusCode;
}

/** Checks the answer of every route for a key. */
function answerAll(answer: Extract<CustomerAnswer, { kind: 'invalid' | 'unavailable' }>): void {
  listener.answer = answer;
  listener.listedAnswer = answer;
  listener.keyStatus = answer;
  listener.refunded = answer;
  listener.customer = answer;
}

function described(route: string, status: number): unknown {
  const media = Object.values(operationOf(route).responses[status]?.content ?? {});
  return media.map(({ schema }) => schema['$ref']);
}

describe('the answer to a request that succeeds', () => {
  it.each(EVERYTHING.filter((route) => route !== STREAM))('matches the document: %s', async (route) => {
    expect(await statusOf(route)).toBe(route === 'POST /v1/tokens' ? 201 : 200);
  });

  const limits = [limitStatusOf(), limitStatusOf({ ruleId: 'b' })];

  it.each<[string, AskAnswer, string, number]>([
    ['a grant', { kind: 'decision', decision: decisionOf() }, 'Grant', 200],
    ['a grant to a key', { kind: 'decision', decision: decisionOf(), key: 'user=ada' }, 'Grant', 200],
    [
      'a grant under limits',
      { kind: 'decision', decision: decisionOf({ limits, waitMillis: 5 }), key: 'user=ada' },
      'Grant',
      200,
    ],
    ['no limit', { kind: 'unlimited', rulesVersion: 7 }, 'Grant', 200],
    [
      'a grant by the fail mode',
      { kind: 'degraded', allowed: true, ruleIds: ['a'], rulesVersion: 7, retryAfterMillis: 0 },
      'Grant',
      200,
    ],
    [
      'a denial by the fail mode',
      { kind: 'degraded', allowed: false, ruleIds: ['a'], rulesVersion: 7, retryAfterMillis: 5 },
      'Denial',
      429,
    ],
    ['a denial', { kind: 'decision', decision: denialOf({ limits }) }, 'Denial', 429],
    ['a denial of a key', { kind: 'decision', decision: denialOf(), key: 'user=ada' }, 'Denial', 429],
    ['a block', { kind: 'decision', decision: denialOf({ isBlocked: true }) }, 'Blocked', 403],
    ['a request that no rule matches', { kind: 'unmatched', rulesVersion: 7 }, 'Blocked', 403],
    ['a conflict', { kind: 'conflict', field: 'cost', message: 'why' }, 'Fault', 422],
    ['bad input', { kind: 'invalid', field: 'rule', message: 'why' }, 'Fault', 400],
  ])('with a decision matches the document: %s', async (_what, answer, name, status) => {
    listener.answer = answer;
    for (const body of [{ userId: 'ada' }, { descriptors: { user: 'ada' } }, { userId: 'ada', rule: 'a' }]) {
      expect(await statusOf('POST /v1/allow', { body })).toBe(status);
      expect(await statusOf('POST /v1/allow/batch', { body: { requests: [body] } })).toBe(200);
    }
    expect(described('POST /v1/allow', status)).toEqual([`#/components/schemas/${name}`]);
    expect(await statusOf('GET /v1/forward-auth')).toBe(status);
    const asked = { query: '?deny_status=403' };
    expect(await statusOf('GET /v1/forward-auth', asked)).toBe(status === 429 ? 403 : status);
  });

  it('is 202 if not all nodes know the change yet', async () => {
    listener.changed = { ...MADE, pending: [2] };
    for (const route of [
      'PUT /v1/rules',
      'PUT /v1/rules/*',
      'DELETE /v1/rules/*',
      'DELETE /v1/tokens/:tokenId',
    ])
      expect(await statusOf(route)).toBe(202);
    expect(await statusOf('POST /v1/tokens')).toBe(201);
  });

  it.each<[number, string, RefundQuestionAnswer]>([
    [200, 'all of it', { kind: 'refund', refund: REFUND, kept: undefined }],
    [200, 'some', { kind: 'refund', refund: REFUND, kept: [{ ruleId: 'a', userId: 'user=ada' }] }],
    [404, 'no grant', { kind: 'refund', refund: { ...REFUND, refunded: false }, kept: undefined }],
    [404, 'no limit', { kind: 'unlimited', rulesVersion: 7 }],
  ])('to a refund matches the document: %s, %s', async (status, _what, answer) => {
    listener.refunded = answer;
    const body = { requestId: '5f0c', rule: 'a' };
    expect(await statusOf('POST /v1/refunds')).toBe(status);
    expect(await statusOf('POST /v1/refunds', { body: { ...body, userId: 'ada' } })).toBe(status);
    expect(await statusOf('POST /v1/users/:userId/refunds')).toBe(status);
    expect(await statusOf('POST /v1/users/:userId/refunds', { body })).toBe(status);
  });

  it('names the key, and the user if it is the key of one', async () => {
    for (const [method, path] of [
      ['GET', ''],
      ['PUT', '/block'],
      ['DELETE', '/block'],
      ['POST', '/reset'],
      ['PUT', '/used'],
    ] as const) {
      const body = path === '/used' ? { payload: { rule: 'a', used: 1 } } : {};
      const reported = async (url: string): Promise<unknown> =>
        (await listener.app.inject({ method, url, ...body })).json();
      expect(await reported(`/v1/users/ada${path}`)).toMatchObject({ userId: 'ada', key: 'user=ada' });
      const ofKey = await reported(`/v1/keys/ip=10.0.0.1${path}`);
      expect(ofKey).toMatchObject({ key: 'ip=10.0.0.1' });
      expect(ofKey).not.toHaveProperty('userId');
    }
  });
});

describe('the answer to a request that fails', () => {
  it.each(CLOSED)('is 401 without a token, and 403 with a role that is too low: %s', async (route) => {
    listener.access.close();
    expect(await statusOf(route)).toBe(401);
    const lower = ['decide', 'read'].filter(
      (role) => !operationOf(route).description.includes(` ${role} or`),
    );
    for (const role of lower) expect(await statusOf(route, { token: `${role}-token` })).toBe(403);
  });

  it('is 403 from another machine while the cluster is open', async () => {
    const refused: string[] = [];
    for (const route of EVERYTHING.filter((each) => each !== STREAM))
      if ((await statusOf(route, { remoteAddress: '10.0.0.7' })) === 403) refused.push(route);
    expect(refused.length).toBeGreaterThan(10);
  });

  it.each(UNAVAILABLE_REASONS)('matches the document if no node can decide: %s', async (reason) => {
    answerAll({ kind: 'unavailable', reason, proposed: true });
    expect(OF_KEYS.length).toBeGreaterThan(15);
    for (const route of OF_KEYS) expect(await statusOf(route)).toBe(503);
  });

  it('matches the document if the rules refuse the request', async () => {
    answerAll({ kind: 'invalid', field: 'rule', message: 'why' });
    for (const route of OF_KEYS) expect(await statusOf(route)).toBe(400);
  });

  it.each(Object.entries(REFUSALS))(
    'matches the document for every refused change of the cluster: %s',
    async (route, own) => {
      for (const reason of [...own, ...COMMON]) {
        listener.changed = { ok: false, reason };
        expect(await statusOf(route)).toBe(CHANGE_FAILURES[reason].status);
      }
      listener.changed = { ok: false, reason: 'nodesBehind', behind: [{ node: 2, speaks: 1 }, { node: 3 }] };
      expect(await statusOf(route)).toBe(409);
    },
  );

  it('is tested for every route that changes the cluster, and every reason', async () => {
    const reasons = new Set([...Object.values(REFUSALS).flat(), ...COMMON, 'invalid']);
    expect([...reasons].sort()).toEqual(Object.keys(CHANGE_FAILURES).sort());
    const changing: string[] = [];
    for (const route of EVERYTHING.filter((each) => each !== STREAM)) {
      await statusOf(route);
      if (listener.changes.splice(0).length > 0) changing.push(route);
    }
    expect(changing.sort()).toEqual(Object.keys(REFUSALS).sort());
  });

  it('matches the document for wrong, unknown and missing rules', async () => {
    listener.changed = { ok: false, reason: 'invalid', field: 'rules', message: 'why' };
    for (const route of ['PUT /v1/rules', 'PUT /v1/rules/*']) expect(await statusOf(route)).toBe(400);
    listener.rules = { ...RULES, rules: [] };
    expect(await statusOf('GET /v1/rules/*')).toBe(404);
    listener.rules = undefined;
    for (const route of ['GET /v1/rules', 'GET /v1/rules/*']) expect(await statusOf(route)).toBe(503);
  });

  it('matches the document for an unknown customer, and for another version', async () => {
    const record = { version: 0, overrides: [], isBlocked: false };
    listener.customer = { kind: 'customer', outcome: { isDone: false, record, decided: DECIDED } };
    expect(await statusOf('GET /v1/customers/:customerId')).toBe(404);
    for (const method of ['PUT', 'DELETE'])
      expect(await statusOf(`${method} /v1/customers/:customerId`)).toBe(412);
  });

  it.each(Object.keys(USAGE_FAILURES) as (keyof typeof USAGE_FAILURES)[])(
    'matches the document for missing usage: %s',
    async (reason) => {
      listener.usage = { ok: false, reason };
      expect(await statusOf('GET /v1/usage')).toBe(503);
    },
  );

  it.each<[NoBackup, number]>([
    ['starting', 503],
    ['noSuchGroup', 404],
    ['notLeader', 409],
    ['busy', 503],
  ])('matches the document for a missing backup: %s', async (reason, status) => {
    listener.backup = { ok: false, reason };
    expect(await statusOf('GET /v1/backup/:group')).toBe(status);
  });

  it('matches the document while a node starts or stops', async () => {
    listener.readiness = { status: 'starting', loaded: 3, of: 7 };
    for (const route of ['GET /v1/cluster', 'GET /v1/leaders', 'GET /readyz'])
      expect(await statusOf(route)).toBe(503);
    listener.readiness = { status: 'draining', reason: 'why', leads: 2 };
    expect(await statusOf('GET /readyz')).toBe(503);
    listener.readiness = { status: 'stopping' };
    expect(await statusOf(STREAM)).toBe(503);
  });

  it('has, for a wrong cost, the fault in the document', async () => {
    const { example } =
      resolved(operationOf('POST /v1/allow').responses['400'])?.content['application/json'] ?? {};
    const { body } = await listener.post({ userId: 'ada', cost: -1 });
    expect(body).toEqual(example);
  });
});
