/**
 * The HTTP listener accepts exactly the bodies that docs/openapi.json describes, tested with random bodies and
 * variants with one thing changed.
 */
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ROUNDS } from '../../raft/seeded.ts';
import { Listener } from '../fixtures.ts';
import { bodiesOf, mutated } from './bodies-of.ts';
import { operationOf, OPERATIONS, resolved, type Schema, wrongIn } from './described.ts';

let listener: Listener;

beforeAll(() => {
  listener = new Listener();
});
afterAll(() => listener.app.close());

interface Row {
  /** The request to send. */
  readonly url: string;
  /** The greatest depth that the listener checks; the node checks deeper values. */
  readonly depthMax?: number;
  /** Bodies that the listener refuses although no schema can express it. */
  readonly unless?: (body: unknown) => boolean;
  /** True if a body that is answered with 200 was accepted completely. */
  readonly isWhole?: (answer: string) => boolean;
}

/** Each request of a batch is refused in its place. */
function hasNoMalformed(answer: string): boolean {
  const { answers } = JSON.parse(answer) as { readonly answers: readonly { readonly status: number }[] };
  return answers.every(({ status }) => status !== 400);
}

function namesRuleTwice(body: unknown): boolean {
  const { overrides } = (body ?? {}) as {
    readonly overrides?: readonly ({ readonly rule?: unknown } | null)[];
  };
  const rules = Array.isArray(overrides) ? overrides.map((each) => each?.rule) : [];
  return new Set(rules).size < rules.length;
}

/** A duration is only allowed with a block. */
function lastsWithoutBlock(body: unknown): boolean {
  const { blocked, durationMillis } = (body ?? {}) as Readonly<Record<string, unknown>>;
  return durationMillis !== undefined && blocked !== true;
}

const ROWS: Readonly<Record<string, Row>> = {
  'POST /v1/allow': { url: '/v1/allow' },
  'POST /v1/allow/batch': { url: '/v1/allow/batch', isWhole: hasNoMalformed },
  'POST /v1/users/:userId/refunds': { url: '/v1/users/ada/refunds' },
  'POST /v1/refunds': { url: '/v1/refunds' },
  'PUT /v1/rules': { url: '/v1/rules', depthMax: 0 },
  'PUT /v1/rules/*': { url: '/v1/rules/default', depthMax: 0 },
  'PUT /v1/customers/:customerId': {
    url: '/v1/customers/acme',
    unless: (body) => namesRuleTwice(body) || lastsWithoutBlock(body),
  },
  'PUT /v1/keys/:key/block': { url: '/v1/keys/ip=10.0.0.1/block' },
  'PUT /v1/users/:userId/block': { url: '/v1/users/ada/block' },
  'PUT /v1/keys/:key/used': { url: '/v1/keys/ip=10.0.0.1/used' },
  'PUT /v1/users/:userId/used': { url: '/v1/users/ada/used' },
  'POST /v1/cluster/nodes': { url: '/v1/cluster/nodes' },
  'PUT /v1/cluster/nodes/:nodeId/labels': { url: '/v1/cluster/nodes/2/labels' },
  'PUT /v1/cluster/version': { url: '/v1/cluster/version' },
  'POST /v1/tokens': { url: '/v1/tokens' },
};

function others(count: number): Readonly<Record<string, string>> {
  return Object.fromEntries(Array.from({ length: count }, (_, i) => [`d${i}`, 'a']));
}

const KEYS = /:(?:userId|key)\b/;
/** Bodies that the node reads, not the listener. */
const ANY_FIELD = 'PUT /v1/rules/*';
/** Bodies of a protocol that is described elsewhere. */
const ELSEWHERE = ['POST /json'];

function bodyOf(route: string): { readonly schema: Schema; readonly example?: unknown } {
  const media = operationOf(route).requestBody?.content['application/json'];
  if (media === undefined) throw new Error(`${route} has no JSON body`);
  return media;
}

describe('the bodies that the listener accepts', () => {
  it('are tested for every route with a body', () => {
    const withBody = [...OPERATIONS].filter(([, { requestBody }]) => requestBody !== undefined);
    expect(withBody.map(([route]) => route).sort()).toEqual([...Object.keys(ROWS), ...ELSEWHERE].sort());
  });

  it.each(Object.entries(ROWS))('are, for %s, those of the document', async (route, row) => {
    const { url, depthMax, unless = () => false, isWhole = () => true } = row;
    const { schema, example } = bodyOf(route);
    const seen = { taken: 0, refused: 0 };
    const [method] = route.split(' ') as ['POST' | 'PUT'];
    const isTaken = async (body: unknown): Promise<boolean> => {
      const headers = { 'content-type': 'application/json' };
      const payload = JSON.stringify(body);
      const { statusCode, body: answer } = await listener.app.inject({ method, url, headers, payload });
      expect(statusCode).not.toBe(500);
      // Too large as a whole, which no schema can express.
      fc.pre(statusCode !== 413);
      const isTakenWhole = statusCode !== 400 && (statusCode !== 200 || isWhole(answer));
      seen[isTakenWhole ? 'taken' : 'refused'] += 1;
      return isTakenWhole;
    };
    const bodies = fc.oneof({ weight: 4, arbitrary: bodiesOf(schema, unless) }, fc.constant(example));
    await fc.assert(
      fc.asyncProperty(bodies, async (body) => {
        expect([JSON.stringify(body), await isTaken(body)]).toEqual([JSON.stringify(body), true]);
      }),
      { numRuns: 60 * ROUNDS },
    );
    expect(seen.refused).toBe(0);
    await fc.assert(
      fc.asyncProperty(mutated(schema, bodies, depthMax), async (body) => {
        fc.pre(!unless(body));
        const wrong = wrongIn(schema, body);
        expect([JSON.stringify(body), wrong, await isTaken(body)]).toEqual([
          JSON.stringify(body),
          wrong,
          wrong.length === 0,
        ]);
      }),
      { numRuns: 400 * ROUNDS },
    );
    expect(seen.refused).toBeGreaterThan(0);
  });

  it.each(Object.entries(ROWS).filter(([route]) => route !== ANY_FIELD))(
    'have, for %s, the fields that the document names, and no other',
    async (route, { url }) => {
      const [method] = route.split(' ') as ['POST' | 'PUT'];
      const refused = await listener.app.inject({ method, url, payload: { nobody: 1 } });
      const { message } = refused.json<{ error: { message: string } }>().error;
      const [, names = ''] = /^nobody is not a field; the fields are (.+)$/.exec(message) ?? [];
      const { properties = {} } = resolved(bodyOf(route).schema);
      expect(names.split(', ').sort()).toEqual(Object.keys(properties as Schema).sort());
    },
  );

  it.each(['POST /v1/allow', 'POST /v1/refunds'])(
    'may name, for %s, a user as one of 16 descriptors',
    async (route) => {
      const { schema } = bodyOf(route);
      const { url = '' } = ROWS[route] ?? {};
      const areTaken = async (descriptors: object): Promise<readonly boolean[]> => {
        const body = { requestId: 'a', userId: 'ada', descriptors };
        const { status } = await listener.post(body, 'application/json', url);
        return [wrongIn(schema, body).length === 0, status === 200];
      };
      expect(await areTaken(others(15))).toEqual([true, true]);
      expect(await areTaken({ ...others(15), user: 'ada' })).toEqual([true, true]);
      expect(await areTaken(others(16))).toEqual([false, false]);
      // No schema can say that both must be equal.
      expect(await areTaken({ user: 'bob' })).toEqual([true, false]);
    },
  );

  it.each([...OPERATIONS.keys()].filter((route) => KEYS.test(route)))(
    'have, for %s, ids in the path of the documented length',
    async (route) => {
      const { parameters, requestBody } = operationOf(route);
      const schema = resolved(parameters.find((each) => each.in === 'path')?.schema);
      const [method, path] = route.split(' ') as ['GET' | 'POST' | 'PUT' | 'DELETE', string];
      const payload = requestBody?.content['application/json']?.example as object | undefined;
      const isTaken = async (length: number): Promise<boolean> => {
        const url = path.replace(KEYS, 'x'.repeat(length));
        const { statusCode } = await listener.app.inject({ method, url, ...(payload && { payload }) });
        return statusCode === 200;
      };
      const lengths = [0, Number(schema?.['minLength']), Number(schema?.['maxLength'])];
      expect(await Promise.all(lengths.map(isTaken))).toEqual([false, true, true]);
      expect(await isTaken(Number(schema?.['maxLength']) + 1)).toBe(false);
    },
  );
});
