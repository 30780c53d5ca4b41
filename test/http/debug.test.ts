/** Heap snapshots and CPU profiles: the callers that may get them. The contents are fake. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { WantedDiagnosis } from '../../src/api/api-listener.ts';
import { Listener } from './fixtures.ts';

const HEAP = '/v1/debug/heap-snapshot';
const CPU = '/v1/debug/cpu-profile';

let listener: Listener;
let wanted: WantedDiagnosis[];
let closed: Set<WantedDiagnosis>;

async function* played(fails?: Error): AsyncGenerator<Uint8Array> {
  if (fails !== undefined) throw fails;
  yield Buffer.from('the ');
  yield Buffer.from('secret');
}

function give(fails?: Error): void {
  listener.diagnose = (each) => {
    wanted.push(each);
    return { chunks: played(fails), close: () => void closed.add(each) };
  };
}

beforeEach(() => {
  listener = new Listener();
  wanted = [];
  closed = new Set();
  give();
});
afterEach(async () => listener.app.close());

const ask = async (
  url: string,
  { remoteAddress = '127.0.0.1', headers = {} }: { remoteAddress?: string; headers?: object } = {},
) => listener.app.inject({ method: 'POST', url, remoteAddress, headers: { ...headers } });

const ADMIN = { authorization: 'Bearer admin-token' };

it('is streamed, cached nowhere, and never in the log', async () => {
  const heap = await ask(HEAP);
  expect([heap.statusCode, heap.payload]).toEqual([200, 'the secret']);
  expect(heap.headers).toMatchObject({
    'cache-control': 'no-store',
    'content-type': 'application/octet-stream',
    'content-disposition': expect.stringMatching(/^attachment; filename="quorate-\d+\.heapsnapshot"$/),
  });
  const cpu = await ask(`${CPU}?seconds=60`);
  expect(cpu.headers['content-disposition']).toMatch(/\.cpuprofile"$/);
  await ask(CPU);
  expect(wanted).toEqual([
    { kind: 'heapSnapshot' },
    { kind: 'cpuProfile', seconds: 60 },
    { kind: 'cpuProfile', seconds: 10 },
  ]);
  await vi.waitFor(() => expect([...closed]).toEqual(wanted));
  expect(listener.logged.map((line) => JSON.parse(line) as unknown)).toMatchObject([
    { audit: true, by: 'local', action: 'debug.heapSnapshot', status: 200 },
    { audit: true, by: 'local', action: 'debug.cpuProfile', status: 200 },
    { audit: true, by: 'local', action: 'debug.cpuProfile', status: 200 },
  ]);
  expect(listener.logged.join('')).not.toContain('secret');
});

describe.each([HEAP, CPU])('%s', (url) => {
  it('is refused from another machine, with any token', async () => {
    const elsewhere = { remoteAddress: '10.0.0.7' };
    expect((await ask(url, elsewhere)).statusCode).toBe(403);
    listener.access.close();
    const answer = await ask(url, { ...elsewhere, headers: ADMIN });
    expect(answer.statusCode).toBe(403);
    expect(answer.payload).toContain('on the machine of this node');
    expect(wanted).toEqual([]);
  });

  it('is refused to a browser or through a proxy of this machine', async () => {
    for (const name of ['origin', 'x-forwarded-for', 'via'])
      expect((await ask(url, { headers: { [name]: 'other' } })).statusCode).toBe(403);
    expect((await listener.app.inject({ method: 'GET', url })).statusCode).toBe(405);
    expect(wanted).toEqual([]);
  });

  it('needs a token of role admin in a closed cluster', async () => {
    listener.access.close();
    expect((await ask(url)).statusCode).toBe(401);
    expect((await ask(url, { headers: { authorization: 'Bearer read-token' } })).statusCode).toBe(403);
    expect((await ask(url, { headers: ADMIN })).statusCode).toBe(200);
    expect(wanted).toHaveLength(1);
  });

  it('is given to one caller at a time', async () => {
    listener.diagnose = () => undefined;
    const answer = await ask(url);
    expect([answer.statusCode, answer.json<{ reason: string }>().reason]).toEqual([409, 'busy']);
  });

  it('is 503 if the node stopped before the first byte', async () => {
    give(new Error('the node stops'));
    listener.readiness = { status: 'stopping' };
    const { statusCode, headers, payload } = await ask(url);
    expect(statusCode).toBe(503);
    expect(JSON.parse(payload)).toMatchObject({ reason: 'brokenOff' });
    expect(headers['content-disposition']).toBeUndefined();
    await vi.waitFor(() => expect([...closed]).toEqual(wanted));
    expect(listener.logged.filter((line) => line.includes('"level":50'))).toEqual([]);
  });
});

it.each(['seconds=0', 'seconds=61', 'seconds=1.5', 'seconds=', 'minutes=1', 'seconds=1&seconds=2'])(
  'refuses the query %s, and names the field and its bound',
  async (query) => {
    const { statusCode, payload } = await ask(`${CPU}?${query}`);
    expect(statusCode).toBe(400);
    expect(payload).toMatch(/seconds/);
    expect((await ask(`${HEAP}?${query}`)).statusCode).toBe(400);
    expect(wanted).toEqual([]);
  },
);
