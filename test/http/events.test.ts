/** `GET /v1/events` over real connections: the events, the number of streams, and when a stream ends. */
import { afterEach, describe, expect, it } from 'vitest';
import { EventReader, type ServerEvent } from '../../src/dashboard/event-reader.ts';
import { LISTENERS_MAX } from '../../src/http/event-streams.ts';
import { eventually } from '../cluster/harness.ts';
import { until } from '../transport/wait.ts';
import { Listener, FIGURES, REPORT } from './fixtures.ts';

let listener = new Listener();
const ends: AbortController[] = [];

afterEach(async () => {
  for (const end of ends.splice(0)) end.abort();
  await listener.app.close();
  listener = new Listener();
});

interface Listening {
  readonly status: number;
  readonly headers: Headers;
  readonly events: ServerEvent[];
  isOver: boolean;
}

async function listen(port: number, token?: string): Promise<Listening> {
  const end = new AbortController();
  ends.push(end);
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const response = await fetch(`http://127.0.0.1:${port}/v1/events`, { headers, signal: end.signal });
  const listening: Listening = {
    status: response.status,
    headers: response.headers,
    events: [],
    isOver: false,
  };
  void collect(response, listening);
  return listening;
}

async function collect({ body }: Response, listening: Listening): Promise<void> {
  const reader = new EventReader();
  const decoder = new TextDecoder();
  try {
    for await (const bytes of body ?? [])
      listening.events.push(...reader.read(decoder.decode(bytes as Uint8Array, { stream: true })));
  } catch {
    // The test ended it.
  }
  listening.isOver = true;
}

function named({ events }: Listening, name: string): unknown[] {
  return events.filter((event) => event.name === name).map(({ data }) => JSON.parse(data) as unknown);
}

describe('the stream of events', () => {
  it('sends the cluster, the figures and the faults at once, and repeats the first two', async () => {
    listener.faults = [{ id: 1, atMillis: 5, kind: 'nodeSilent', node: 2 }];
    const listening = await listen(await listener.listen());
    expect(listening.status).toBe(200);
    expect(listening.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
    expect(listening.headers.get('cache-control')).toBe('no-store');
    await until('it is sent twice', () => named(listening, 'cluster').length > 1);
    const { rules, ...report } = REPORT;
    expect(named(listening, 'cluster')[1]).toEqual({ ...report, rulesVersion: rules?.version });
    expect(named(listening, 'figures')[0]).toEqual(FIGURES);
    expect(named(listening, 'faults')[0]).toEqual(listener.faults);
  });

  it('sends the faults when there is a new one', async () => {
    const listening = await listen(await listener.listen());
    await until('it began', () => named(listening, 'figures').length > 0);
    listener.faults = [{ id: 7, atMillis: 5, kind: 'leaderLost', node: 2, count: 1, partitions: [4] }];
    await until('it is sent', () => named(listening, 'faults').length > 1);
    expect(named(listening, 'faults').at(-1)).toEqual(listener.faults);
  });

  it('sends no cluster while the node starts', async () => {
    listener.readiness = { status: 'starting', loaded: 1, of: 4 };
    const listening = await listen(await listener.listen());
    await until('it is sent twice', () => named(listening, 'figures').length > 1);
    expect(named(listening, 'cluster')).toEqual([]);
  });

  it('is refused above the maximum number of streams, until another one ends', async () => {
    const port = await listener.listen();
    await Promise.all(Array.from({ length: LISTENERS_MAX }, async () => listen(port)));
    const refused = await fetch(`http://127.0.0.1:${port}/v1/events`);
    expect(refused.status).toBe(503);
    expect(refused.headers.get('retry-after')).toBe('1');
    expect(await refused.json()).toMatchObject({ reason: 'tooManyListeners' });
    ends[0]?.abort();
    await eventually('there is room', async () => {
      const { status } = await listen(port);
      return status === 200 ? true : undefined;
    });
  });

  it('is refused to a page of another site', async () => {
    const port = await listener.listen();
    const asked = async (site: string): Promise<number> =>
      (await fetch(`http://127.0.0.1:${port}/v1/events`, { headers: { 'sec-fetch-site': site } })).status;
    expect([await asked('cross-site'), await asked('same-site')]).toEqual([403, 403]);
  });

  it('ends when the node accepts no more clients, and is refused from then on', async () => {
    const port = await listener.listen();
    const listening = await listen(port);
    listener.readiness = { status: 'stopping' };
    await until('it ends', () => listening.isOver);
    const refused = await fetch(`http://127.0.0.1:${port}/v1/events`);
    expect([refused.status, await refused.json()]).toMatchObject([503, { reason: 'leaving' }]);
  });

  it('does not delay the close of the listener', async () => {
    const listening = await listen(await listener.listen());
    await until('it began', () => named(listening, 'figures').length > 0);
    await listener.listener.close();
    await until('it ends', () => listening.isOver);
    expect(await listener.listener.connectionCount()).toBe(0);
  });

  it('ends when its token is revoked, or when the cluster is closed and it has none', async () => {
    const port = await listener.listen();
    const anonymous = await listen(port);
    listener.access.close();
    const reading = await listen(port, 'read-token');
    const other = await listen(port, 'admin-token');
    await until('the client without a token is gone', () => anonymous.isOver);
    listener.access.callers.delete('read-token');
    await until('the client with a revoked token is gone', () => reading.isOver);
    expect([reading.status, other.status, other.isOver]).toEqual([200, 200, false]);
  });
});
