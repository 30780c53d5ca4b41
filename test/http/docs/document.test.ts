/** docs/openapi.json is a valid document, and contains every route, its roles and every bound. */
import { createHash } from 'node:crypto';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { Validator } from '@seriousme/openapi-schema-validator';
import type { FastifyInstance } from 'fastify';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ROUTE_ROLES, rolesOf } from '../../../src/http/route-roles.ts';
import { Listener } from '../fixtures.ts';
import {
  allContent,
  type Described,
  DOCUMENT,
  operationOf,
  OPERATIONS,
  refTo,
  resolved,
  SCHEMAS,
  wrongIn,
  wrongInAnswer,
} from './described.ts';

/** The routes of the listener, as they were registered with its router. */
const routes = new Set<string>();
let listener: Listener;

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
  listener = new Listener();
  unsubscribe('fastify.initialization', listen);
});
afterAll(() => listener.app.close());

describe('the document', () => {
  it('is OpenAPI 3.1', async () => {
    const validator = new Validator();
    const copy = structuredClone(DOCUMENT) as unknown as Parameters<Validator['validate']>[0];
    const { valid, errors } = await validator.validate(copy);
    expect([valid, errors]).toEqual([true, undefined]);
    expect(validator.version).toBe('3.1');
  });

  it.each(Object.keys(SCHEMAS))('has a valid schema %s', (name) => {
    expect(() => wrongIn(refTo(name), null)).not.toThrow();
  });

  it('has no unknown keywords: the check finds them', () => {
    expect(() => wrongIn({ type: 'string', maxLenght: 5 }, 'a')).toThrow('maxLenght');
  });

  it('has every route of the listener, and no other', async () => {
    await listener.app.ready();
    expect([...routes].filter(isApi).sort()).toEqual([...OPERATIONS.keys()].sort());
    expect(routes.size).toBeGreaterThan(30);
  });

  it('names for each route the roles that may use it', () => {
    for (const [route, { description, security = DOCUMENT.security }] of OPERATIONS) {
      expect(ROUTE_ROLES).toHaveProperty([route]);
      const [method = '', path] = route.split(' ');
      const roles = rolesOf(method, path);
      const said =
        roles === 'anybody'
          ? 'Needs no token.'
          : `In a closed cluster: a token of role ${roles.join(' or ')}.`;
      expect([route, description]).toEqual([route, expect.stringMatching(new RegExp(`(^|\\. )${said}$`))]);
      expect([route, security]).toEqual([route, roles === 'anybody' ? [{}] : [{ token: [] }, {}]]);
    }
  });

  it('names the parameters of each path, and gives each operation its own id', () => {
    const ids = new Set<string>();
    for (const [route, { operationId, parameters }] of OPERATIONS) {
      const named = [...route.replace('*', ':ruleId').matchAll(/:(\w+)/g)].map(([, name]) => name);
      const said = parameters.filter((each) => each.in === 'path').map(({ name }) => name);
      expect([route, said]).toEqual([route, named]);
      ids.add(operationId);
    }
    expect(ids.size).toBe(OPERATIONS.size);
  });

  it('describes the refusals of operations that need a token, and the other answers of each operation', () => {
    for (const [route, { operationId, security, responses }] of OPERATIONS) {
      const refusals = security === undefined ? ['401', '403', '503', 'default'] : ['default'];
      expect([route, refusals.filter((status) => responses[status] === undefined)]).toEqual([route, []]);
      // Code generators make function names from it.
      expect(operationId).toMatch(/^(?:get|put|post|delete)[A-Z][A-Za-z]*$/);
    }
  });

  it.each(allContent().filter(([, { example }]) => example !== undefined))(
    'has an example that matches its schema: %s',
    (_where, { schema, example }) => {
      expect(wrongIn(schema, example)).toEqual([]);
    },
  );

  it('has no wrong examples: the check finds them', () => {
    expect(wrongIn(refTo('AllowRequest'), { userId: 'ada', cots: 1 })).not.toEqual([]);
    expect(wrongIn(refTo('Grant'), { allowed: false })).not.toEqual([]);
  });

  it.each(Object.entries(DOCUMENT.components['responses'] ?? {}))(
    'has an example for each answer that several operations have: %s',
    (_name, { content }) => {
      const [shown] = Object.values(content as Described['content']).filter(
        ({ example }) => example !== undefined,
      );
      expect(shown).toBeDefined();
    },
  );

  it('names the address of a node for generated clients', () => {
    expect(DOCUMENT.servers.map(({ url }) => new URL(url).port)).toEqual(['8101']);
  });

  it('has the headers of answers: the check finds undescribed, missing and wrong ones', () => {
    const body = JSON.stringify(
      resolved(operationOf('POST /v1/allow').responses['503'])?.content['application/problem+json']?.example,
    );
    const wrongWith = (headers: Readonly<Record<string, string>>): readonly string[] =>
      wrongInAnswer('POST /v1/allow', {
        statusCode: 503,
        headers: { 'content-type': 'application/problem+json', ...headers },
        body,
      });
    expect(wrongWith({ 'retry-after': '1' })).toEqual([]);
    expect(wrongWith({})[0]).toContain('no header retry-after');
    expect(wrongWith({ 'retry-after': 'soon' })[0]).toContain('retry-after');
    expect(wrongWith({ 'retry-after': '1', 'x-more': '1' })[0]).toContain('header x-more');
  });

  it.each([
    [404, { method: 'GET', url: '/v1/allows' }],
    [405, { method: 'GET', url: '/v1/allow' }],
    [413, { method: 'POST', url: '/v1/allow', body: { userId: 'x'.repeat(9_000) } }],
    [415, { method: 'POST', url: '/v1/allow', body: 'ada', headers: { 'content-type': 'text/plain' } }],
  ] as const)('describes the answer %s for every route', async (status, asked) => {
    const { statusCode, body } = await listener.app.inject(asked);
    expect(statusCode).toBe(status);
    for (const { responses } of OPERATIONS.values()) {
      const { description, content } = responses['default'] as Described & { readonly description: string };
      expect(description).toContain(String(status));
      expect(wrongIn(content['application/json']?.schema ?? {}, JSON.parse(body))).toEqual([]);
    }
  });

  it('has no unused schema, parameter, header or answer', () => {
    const text = JSON.stringify(DOCUMENT);
    for (const kind of ['schemas', 'headers', 'responses', 'parameters'])
      for (const name of Object.keys(DOCUMENT.components[kind] ?? {}))
        expect(text).toContain(`"#/components/${kind}/${name}"`);
  });

  it('is served without a token, also in a closed cluster', async () => {
    listener.access.close();
    const response = await listener.app.inject({ method: 'GET', url: '/openapi.json' });
    expect(response.json()).toEqual(DOCUMENT);
    listener.access.now = 'open';
  });
});

describe('the page', () => {
  it('loads nothing, runs no script, and names every path, parameter and schema', async () => {
    const { headers, body } = await listener.app.inject({ method: 'GET', url: '/docs/api' });
    expect(headers['content-type']).toContain('text/html');
    expect(body).not.toMatch(
      /<(?:script|link|img|iframe|object)|\son\w+=|url\(|@import|src=|href="(?!#|\/openapi\.json"|\/docs")/,
    );
    const [, style = ''] = /<style>([\s\S]*?)<\/style>/.exec(body) ?? [];
    const hash = createHash('sha256').update(style).digest('base64');
    expect(headers['content-security-policy']).toContain(`default-src 'none'; style-src 'sha256-${hash}'`);
    const parameters = [...OPERATIONS.values()].flatMap((operation) => operation.parameters);
    for (const name of [...Object.keys(DOCUMENT.paths), ...parameters.map((each) => each.name)])
      expect(body).toContain(`<code>${name}</code>`);
    for (const [, name] of body.matchAll(/href="#(\w+)"/g)) expect(body).toContain(`id="${name}"`);
    for (const name of Object.keys(SCHEMAS)) expect(body).toContain(`id="${name}"`);
    expect(body).toContain('over the limit');
  });
});
