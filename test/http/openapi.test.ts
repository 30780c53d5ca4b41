/** The document of the HTTP door: valid, whole, and of one mind with the door about what is taken and what is answered. */
import { createHash } from 'node:crypto';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { Validator } from '@seriousme/openapi-schema-validator';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import fc from 'fast-check';
import type { FastifyInstance } from 'fastify';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { AskAnswer } from '../../src/api/question.ts';
import { UNAVAILABLE_REASONS } from '../../src/api/refusals.ts';
import { SCHEMAS, type SchemaName } from '../../src/http/openapi/components.ts';
import { openApiDocument, OPERATIONS } from '../../src/http/openapi/document.ts';
import { ROUTE_ROLES } from '../../src/http/route-roles.ts';
import { decisionOf, standingOf } from '../api/decision-of.ts';
import { ROUNDS } from '../raft/seeded.ts';
import { denialOf, Door } from './fixtures.ts';

const ajv = new Ajv2020({ strict: false, allErrors: true });
ajv.addSchema({ $id: 'door', ...openApiDocument() });

const validators = new Map<SchemaName, ValidateFunction>();

function validatorOf(name: SchemaName): ValidateFunction {
  const validate = validators.get(name) ?? ajv.compile({ $ref: `door#/components/schemas/${name}` });
  validators.set(name, validate);
  return validate;
}

/** What is wrong with `value`; empty: nothing. */
function wrongIn(name: SchemaName, value: unknown): readonly string[] {
  const validate = validatorOf(name);
  return validate(value)
    ? []
    : (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
}

/** Routes of the door, as its router was told them. */
const routes = new Set<string>();
let door: Door;

function listen(message: unknown): void {
  const { fastify } = message as { readonly fastify: FastifyInstance };
  fastify.addHook('onRoute', ({ method, url }) => {
    for (const each of [method].flat()) routes.add(`${each} ${url}`);
  });
}

function isApi(route: string): boolean {
  return !route.startsWith('HEAD ') && /^\S+ \/(?:v1\/|json$|\w+z$|metrics|openapi)/.test(route);
}

beforeAll(() => {
  subscribe('fastify.initialization', listen);
  door = new Door();
  unsubscribe('fastify.initialization', listen);
});
afterAll(() => door.app.close());

describe('the document', () => {
  it('is OpenAPI 3.1', async () => {
    const validator = new Validator();
    const asJson: unknown = JSON.parse(JSON.stringify(openApiDocument()));
    const { valid, errors } = await validator.validate(asJson as Parameters<Validator['validate']>[0]);
    expect([valid, errors]).toEqual([true, undefined]);
    expect(validator.version).toBe('3.1');
  });

  it('holds every route of the door, and no other', async () => {
    await door.app.ready();
    expect([...routes].filter(isApi).sort()).toEqual(Object.keys(OPERATIONS).sort());
    expect(routes.size).toBeGreaterThan(30);
  });

  it('says of each by whom it may be asked', () => {
    for (const route of Object.keys(OPERATIONS)) expect(ROUTE_ROLES).toHaveProperty([route]);
  });

  it.each(Object.entries(OPERATIONS))('%s has examples that are as it says', (_route, { body, answers }) => {
    for (const said of [...(body === undefined ? [] : [body]), ...Object.values(answers)]) {
      if (typeof said.is !== 'string' || said.example === undefined) continue;
      expect([said.is, wrongIn(said.is, said.example)]).toEqual([said.is, []]);
    }
  });

  it('finds examples that are not', () => {
    expect(wrongIn('AllowRequest', { userId: 'ada', cots: 1 })).not.toEqual([]);
    expect(wrongIn('Grant', { allowed: false })).not.toEqual([]);
  });

  it('uses every schema', () => {
    const text = JSON.stringify(openApiDocument());
    for (const name of Object.keys(SCHEMAS)) expect(text).toContain(`"#/components/schemas/${name}"`);
  });

  it('is told to everybody, also by a closed door', async () => {
    door.access.close();
    const response = await door.app.inject({ method: 'GET', url: '/openapi.json' });
    expect(response.json()).toEqual(JSON.parse(JSON.stringify(openApiDocument())));
    door.access.now = 'open';
  });
});

describe('the page', () => {
  it('loads nothing, runs nothing, and names every path', async () => {
    const { headers, body } = await door.app.inject({ method: 'GET', url: '/docs' });
    expect(headers['content-type']).toContain('text/html');
    expect(body).not.toMatch(
      /<(?:script|link|img|iframe|object)|\son\w+=|url\(|@import|src=|href="(?!#|\/openapi\.json")/,
    );
    const [, style = ''] = /<style>([\s\S]*?)<\/style>/.exec(body) ?? [];
    const hash = createHash('sha256').update(style).digest('base64');
    expect(headers['content-security-policy']).toContain(`default-src 'none'; style-src 'sha256-${hash}'`);
    for (const path of Object.keys(openApiDocument().paths)) expect(body).toContain(`<code>${path}</code>`);
  });
});

/** Values at the bounds of some field, or of none. */
const TEXTS = fc.oneof(
  fc.constantFrom('', 'a', 'ada', null, 7, true, {}, []),
  fc
    .constantFrom(1, 63, 64, 65, 127, 128, 129, 255, 256, 257, 1_024, 1_025)
    .map((length) => 'x'.repeat(length)),
);
const NUMBERS = fc.constantFrom<unknown>(
  -1,
  0,
  1,
  1.5,
  5,
  '1',
  null,
  1_000_000,
  1_000_001,
  65_535,
  65_536,
  2_147_483_648,
  8_640_000_000_000_001,
);
const DESCRIPTORS = fc.oneof(
  fc.constantFrom<unknown>(null, [], 'a', {}),
  fc.dictionary(
    fc.constantFrom('ip', 'endpoint', 'a', 'n'.repeat(64), 'n'.repeat(65)),
    fc.oneof(TEXTS, fc.constant('a')),
  ),
  fc.constantFrom(15, 17).map((n) => Object.fromEntries(Array.from({ length: n }, (_, i) => [`d${i}`, 'a']))),
);
const some = (fields: Record<string, fc.Arbitrary<unknown>>): fc.Arbitrary<object> =>
  fc.record({ ...fields, other: fc.constant(1) }, { requiredKeys: [] }).chain((record) =>
    // Mostly without the field that nobody knows.
    fc.boolean().map((keeps) => {
      const { other, ...known } = record as Record<string, unknown>;
      return keeps && other !== undefined && Object.keys(known).length < 2 ? record : known;
    }),
  );
const HOST = fc.oneof(
  some({ host: fc.constantFrom('a', '10.0.0.1'), port: fc.constantFrom(0, 1, 65_535, 65_536) }),
  fc.constant(7),
);

describe('what the door takes', () => {
  const anything = some({
    userId: TEXTS,
    rule: TEXTS,
    cost: NUMBERS,
    timestampMillis: NUMBERS,
    requestId: TEXTS,
    descriptors: DESCRIPTORS,
  });

  const allow = fc.oneof(
    anything,
    fc.record({ userId: fc.constant('ada'), cost: NUMBERS, requestId: TEXTS }, { requiredKeys: ['userId'] }),
    fc.record(
      { descriptors: DESCRIPTORS, cost: fc.constant(2), userId: TEXTS, rule: TEXTS },
      { requiredKeys: ['descriptors'] },
    ),
  );

  it.each<[string, SchemaName, 'POST' | 'PUT', fc.Arbitrary<unknown>]>([
    ['/v1/allow', 'AllowRequest', 'POST', allow],
    [
      '/v1/allow/batch',
      'BatchRequest',
      'POST',
      some({
        requests: fc.oneof(
          fc.array(fc.oneof(allow, fc.constant({ userId: 'ada' })), { maxLength: 2 }),
          fc.constant(1),
        ),
      }),
    ],
    ['/v1/users/ada/refunds', 'RefundRequest', 'POST', some({ requestId: TEXTS })],
    [
      '/v1/refunds',
      'DescribedRefundRequest',
      'POST',
      some({ requestId: TEXTS, descriptors: DESCRIPTORS, userId: TEXTS, rule: TEXTS }),
    ],
    [
      '/v1/customers/acme',
      'CustomerRequest',
      'PUT',
      some({
        tier: TEXTS.filter((tier) => tier !== null),
        blocked: fc.constantFrom(true, false, 'true', 1),
        overrides: fc.array(some({ rule: TEXTS, limit: NUMBERS, burst: NUMBERS }), { maxLength: 1 }),
      }),
    ],
    [
      '/v1/cluster/nodes',
      'NodesRequest',
      'POST',
      some({ remove: NUMBERS, add: some({ id: NUMBERS, http: HOST, peer: HOST }) }).filter(
        (body) => Object.keys(body).length > 0,
      ),
    ],
    [
      '/v1/tokens',
      'TokenRequest',
      'POST',
      some({ role: fc.constantFrom('read', 'admin', 'none', 7), name: TEXTS }),
    ],
  ])('at %s is what %s says', async (url, name, method, bodies) => {
    const validate = validatorOf(name);
    const seen = { taken: 0, refused: 0 };
    const agree = async (body: unknown): Promise<void> => {
      const { statusCode } = await door.app.inject({ method, url, payload: body as object });
      const isTaken = statusCode !== 400;
      seen[isTaken ? 'taken' : 'refused'] += 1;
      expect([JSON.stringify(body), validate(body)]).toEqual([JSON.stringify(body), isTaken]);
    };
    // What the document shows is taken, so that both are seen.
    const [example] = Object.values(OPERATIONS).filter(({ body }) => body?.is === name);
    const all = fc.oneof({ weight: 4, arbitrary: bodies }, fc.constant(example?.body?.example));
    await fc.assert(fc.asyncProperty(all, agree), { numRuns: 80 * ROUNDS });
    expect(Math.min(seen.taken, seen.refused)).toBeGreaterThan(0);
  });
});

describe('what the door answers', () => {
  const limits = [standingOf(), standingOf({ ruleId: 'b' })];

  it.each<[string, AskAnswer, SchemaName, number]>([
    ['a grant to a key', { kind: 'decision', decision: decisionOf(), key: 'user=ada' }, 'Grant', 200],
    ['no limit', { kind: 'unlimited', rulesVersion: 7 }, 'Grant', 200],
    ['a grant', { kind: 'decision', decision: decisionOf() }, 'Grant', 200],
    [
      'a grant under limits',
      { kind: 'decision', decision: decisionOf({ limits, waitMillis: 5 }) },
      'Grant',
      200,
    ],
    ['a denial', { kind: 'decision', decision: denialOf({ limits }) }, 'Denial', 429],
    ['a block', { kind: 'decision', decision: denialOf({ isBlocked: true }) }, 'Blocked', 403],
    ['a conflict', { kind: 'conflict', field: 'cost', message: 'why' }, 'Fault', 422],
    ['bad input', { kind: 'invalid', field: 'rule', message: 'why' }, 'Fault', 400],
    ...UNAVAILABLE_REASONS.map((reason): [string, AskAnswer, SchemaName, number] => [
      reason,
      { kind: 'unavailable', reason, proposed: true },
      'Unavailable',
      503,
    ]),
  ])('%s is as the document says', async (_what, answer, name, expected) => {
    door.answer = answer;
    const { status, body } = await door.post({ userId: 'ada' });
    expect([status, OPERATIONS['POST /v1/allow']?.answers[status]?.is, wrongIn(name, body)]).toEqual([
      expected,
      name,
      [],
    ]);
  });

  it.each<['GET' | 'POST' | 'PUT' | 'DELETE', string, unknown, SchemaName]>([
    ['GET', '/v1/users/ada', undefined, 'Standing'],
    ['GET', '/v1/keys/ip=10.0.0.1', undefined, 'Standing'],
    ['POST', '/v1/users/ada/refunds', { requestId: 'a' }, 'Refunded'],
    ['POST', '/v1/refunds', { requestId: 'a', descriptors: { user: 'ada' } }, 'Refunded'],
    ['GET', '/v1/customers/acme', undefined, 'Customer'],
    ['PUT', '/v1/users/ada/block', undefined, 'Customer'],
    ['PUT', '/v1/rules', { rules: [] }, 'RulesChanged'],
    ['GET', '/v1/rules', undefined, 'Failure'],
    ['GET', '/v1/cluster', undefined, 'Cluster'],
    ['GET', '/v1/usage', undefined, 'Failure'],
    ['GET', '/healthz', undefined, 'Readiness'],
    ['GET', '/readyz', undefined, 'Readiness'],
    ['POST', '/v1/cluster/nodes', { remove: 1 }, 'Version'],
    ['PUT', '/v1/cluster/nodes/1/drain', undefined, 'Draining'],
    ['PUT', '/v1/cluster/version', { version: 1 }, 'Version'],
    ['GET', '/v1/tokens', undefined, 'Tokens'],
    ['DELETE', '/v1/tokens/ab12cd34', undefined, 'TokenRevoked'],
  ])('%s %s is as the document says', async (method, url, payload, name) => {
    const response = await door.app.inject({
      method,
      url,
      ...(payload !== undefined && { payload: payload as object }),
    });
    expect([response.body, wrongIn(name, response.json())]).toEqual([response.body, []]);
  });
});
