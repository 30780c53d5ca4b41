/** The fast path for `POST /v1/allow` answers byte for byte as Fastify's route, for any request. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { AskAnswer } from '../../src/api/question.ts';
import { HTTP_SETTINGS_DEFAULTS } from '../../src/config/http-settings.ts';
import { HTTP_LIMITS } from '../../src/http/http-listener-init.ts';
import { decisionOf } from '../api/decision-of.ts';
import { denialOf, Listener } from './fixtures.ts';
import { RawClient } from './raw-client.ts';

/** The same media type in another spelling, which goes to Fastify's route. */
const UNUSUAL = 'application/json;charset=utf-8';
const BODY = '{"userId":"ada","cost":2}';

let listener = new Listener();
let byFastify = 0;
let clients: RawClient[] = [];

beforeEach(() => {
  listener = new Listener(HTTP_LIMITS, { ...HTTP_SETTINGS_DEFAULTS, userHeader: 'x-user' });
  byFastify = 0;
  clients = [];
  listener.app.addHook('onSend', (_request, _reply, payload, done) => {
    byFastify += 1;
    done(null, payload);
  });
});
afterEach(async () => {
  for (const { socket } of clients) socket.destroy();
  await listener.app.close();
});

interface Sent {
  readonly body?: string | Buffer;
  readonly contentType?: string;
  readonly headers?: readonly string[];
  readonly host?: string;
}

/** The answer without its date. */
async function answerTo(sent: Sent, port: number): Promise<string> {
  const { body = BODY, contentType = 'application/json', headers = [], host = 'localhost' } = sent;
  const bytes = Buffer.from(body);
  const client = new RawClient(port);
  clients.push(client);
  const head = ['POST /v1/allow HTTP/1.1', `host: ${host}`, `content-type: ${contentType}`, ...headers];
  client.socket.write([...head, `content-length: ${bytes.length}`, '', ''].join('\r\n'));
  client.socket.write(bytes);
  await expect.poll(() => isWhole(client.received)).toBe(true);
  return client.received.replace(/^date: .*\r\n/im, '');
}

function isWhole(received: string): boolean {
  const end = received.indexOf('\r\n\r\n');
  const length = Number(/^content-length: (\d+)/im.exec(received)?.[1] ?? Infinity);
  return end > 0 && Buffer.byteLength(received.slice(end + 4)) >= length;
}

/**
 * The parts of an answer by header, so that their order does not matter. Fastify ends the connection after a body that
 * it cannot read.
 */
function partsOf(answer: string): { readonly head: readonly string[]; readonly body: string } {
  const [head = '', body = ''] = answer.split('\r\n\r\n');
  const lines = head.toLowerCase().split('\r\n').toSorted();
  return { head: lines.filter((line) => !/^(connection|keep-alive):/.test(line)), body };
}

const UNAVAILABLE: AskAnswer = { kind: 'unavailable', reason: 'deadline', proposed: true };
const ANSWERS: readonly (readonly [string, AskAnswer])[] = [
  ['a grant', { kind: 'decision', decision: decisionOf() }],
  ['a denial', { kind: 'decision', decision: denialOf() }],
  ['a blocked key', { kind: 'decision', decision: denialOf({ isBlocked: true }) }],
  ['an outage', UNAVAILABLE],
  ['a request id that is used', { kind: 'conflict', field: 'requestId', message: 'is used' }],
  ['no rule', { kind: 'unmatched', rulesVersion: 7 }],
  ['no limit', { kind: 'unlimited', rulesVersion: 7 }],
];

describe('a usual request for a grant', () => {
  it.each(ANSWERS)('gets the answer of %s as through Fastify', async (_what, answer) => {
    listener.answer = answer;
    const port = await listener.listen();
    const direct = await answerTo({}, port);
    expect(byFastify).toBe(0);
    const routed = await answerTo({ contentType: UNUSUAL }, port);
    expect(byFastify).toBe(1);
    expect(partsOf(direct)).toEqual(partsOf(routed));
    expect(listener.asked[0]).toEqual(listener.asked[1]);
    expect(listener.observed[0]).toEqual(listener.observed[1]);
    expect(listener.reported[0]).toEqual(listener.reported[1]);
    expect([...listener.shedding.fractions.values()].map(({ open }) => open)).toEqual([0]);
  });

  it.each([
    ['is no JSON', { body: '{"userId":' }],
    ['has another field', { body: '{"userId":"ada","costs":2}' }],
    ['has a field twice', { body: '{"userId":"ada","userId":"bob"}' }],
    ['is not UTF-8', { body: Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x7d]) }],
    ['names no user', { body: '{}' }],
    ['names one user, and its header another', { headers: ['x-user: bob'] }],
    ['has the header twice', { headers: ['x-user: ada', 'x-user: ada'] }],
  ])('that %s is refused as through Fastify', async (_what, sent: Sent) => {
    const port = await listener.listen();
    const direct = await answerTo(sent, port);
    expect(byFastify).toBe(0);
    const routed = await answerTo({ ...sent, contentType: UNUSUAL }, port);
    expect(partsOf(direct)).toEqual(partsOf(routed));
    expect(direct).toMatch(/^HTTP\/1\.1 400 /);
    expect(listener.observed.map(({ status }) => status)).toEqual([400, 400]);
    expect(listener.asked).toEqual([]);
  });

  it('is refused for load as through Fastify', async () => {
    listener.shedding.refused = true;
    const port = await listener.listen();
    const direct = await answerTo({}, port);
    const routed = await answerTo({ contentType: UNUSUAL }, port);
    expect(partsOf(direct)).toEqual(partsOf(routed));
    expect(direct).toMatch(/^HTTP\/1\.1 503 /);
    expect(listener.refusedUnread).toBe(2);
  });

  it('is counted under its token', async () => {
    listener.access.close();
    const port = await listener.listen();
    const headers = ['authorization: Bearer decide-token'];
    const direct = await answerTo({ headers }, port);
    expect(byFastify).toBe(0);
    expect(partsOf(direct)).toEqual(partsOf(await answerTo({ headers, contentType: UNUSUAL }, port)));
    expect([...listener.shedding.fractions.keys()]).toEqual(['iddecide']);
  });

  it('may come in pieces, and many may come at once', async () => {
    const port = await listener.listen();
    const client = new RawClient(port);
    clients.push(client);
    client.ask('ada');
    client.ask('bob');
    client.socket.write(`POST /v1/allow HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n`);
    client.socket.write(`content-length: ${BODY.length}\r\n\r\n${BODY.slice(0, 5)}`);
    await expect.poll(() => client.statuses()).toEqual(['200', '200']);
    client.socket.write(BODY.slice(5));
    await expect.poll(() => client.statuses()).toEqual(['200', '200', '200']);
    expect(listener.asked).toHaveLength(3);
    expect(byFastify).toBe(0);
  });

  it('is answered as the last request on its connection if the node has begun to stop', async () => {
    listener.answer = undefined;
    const port = await listener.listen();
    const answer = answerTo({}, port);
    await expect.poll(() => listener.open.length).toBe(1);
    listener.readiness = { status: 'stopping' };
    listener.open[0]?.({ kind: 'decision', decision: decisionOf() }, 3);
    expect(await answer).toMatch(/^connection: close/im);
  });
});

describe('any other request for a grant goes through Fastify:', () => {
  it.each([
    ['with a wrong token', { headers: ['authorization: Bearer wrong'] }, 401, 'closed'],
    ['with a token of another role', { headers: ['authorization: Bearer read-token'] }, 403, 'closed'],
    ['with no token', {}, 401, 'closed'],
    ['while tokens are unknown', {}, 503, 'unknown'],
    ['with the host name of a web page', { host: 'evil.example' }, 421, 'open'],
    ['with a body that is too long', { body: ' '.repeat(8_193) }, 413, 'open'],
    ['with an empty body', { body: '' }, 400, 'open'],
    ['of another type', { contentType: 'text/plain' }, 415, 'open'],
    ['with an encoding', { headers: ['content-encoding: gzip'] }, 415, 'open'],
  ] as const)('%s', async (_what, sent: Sent, status, mode) => {
    if (mode === 'closed') listener.access.close();
    if (mode === 'unknown') listener.access.now = 'unknown';
    const port = await listener.listen();
    expect(await answerTo(sent, port)).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    expect(byFastify).toBe(1);
    expect(listener.asked).toEqual([]);
    expect(listener.access.failures).toBe(sent.headers?.[0] === 'authorization: Bearer wrong' ? 1 : 0);
  });
});
