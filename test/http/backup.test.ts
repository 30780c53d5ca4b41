/** Backups over HTTP: the chunks of one group, each after its length, at most at the requested rate. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type OpenBackup, SNAPSHOT_HEADER } from '../../src/api/backup.ts';
import { Listener } from './fixtures.ts';

const CHUNKS = [Buffer.from('one'), Buffer.from(''), Buffer.from('three')];
const SNAPSHOT = {
  clusterId: 'c',
  partitions: 4,
  hash: 'h',
  group: 3,
  index: 7,
  term: 2,
  timeMillis: 90,
  chunkCount: 3,
  byteLength: 8,
};
let listener = new Listener();
let closed = 0;
let read: number[] = [];

function played(changes: Partial<OpenBackup> = {}): OpenBackup {
  return {
    snapshot: SNAPSHOT,
    read: async (chunk) => {
      read.push(chunk);
      return CHUNKS[chunk];
    },
    close: () => {
      closed += 1;
    },
    ...changes,
  };
}

beforeEach(() => {
  listener = new Listener();
  closed = 0;
  read = [];
});
afterEach(async () => listener.app.close());

const ask = async (url: string, headers: Record<string, string> = {}) =>
  listener.app.inject({ method: 'GET', url, headers });

describe('GET /v1/backup/{group}', () => {
  it('describes the snapshot, and sends every chunk after its length', async () => {
    listener.backup = { ok: true, backup: played() };
    const { statusCode, headers, rawPayload } = await ask('/v1/backup/3');
    expect(statusCode).toBe(200);
    expect(listener.backups).toEqual([3]);
    expect(JSON.parse(String(headers[SNAPSHOT_HEADER]))).toEqual(SNAPSHOT);
    expect(headers).toMatchObject({ 'cache-control': 'no-store', 'content-length': '20' });
    expect(rawPayload.toString('latin1')).toBe('\x03\0\0\0one\0\0\0\0\x05\0\0\0three');
    expect(closed).toBeGreaterThan(0);
  });

  it('ends early if the snapshot is replaced, the disk fails, or the node stops', async () => {
    const reads: [OpenBackup['read'], string][] = [
      [async (chunk) => (chunk === 0 ? CHUNKS[0] : undefined), 'broken'],
      [async () => Promise.reject(new Error('the disk')), '500'],
    ];
    for (const [each, fate] of reads) {
      listener.backup = { ok: true, backup: played({ read: each }) };
      closed = 0;
      const seen = ask('/v1/backup/3').then(
        ({ statusCode }) => String(statusCode),
        () => 'broken',
      );
      expect(await seen).toBe(fate);
      expect(closed).toBeGreaterThan(0);
    }
  });

  it('returns the reason if it ends before its first byte, which is no error of the node', async () => {
    const stopping = played({
      read: async () => {
        throw new Error('a stopping node must not read chunks');
      },
    });
    const replaced = played({ read: async () => undefined });
    for (const [backup, readiness] of [
      [stopping, { status: 'stopping' }],
      [replaced, listener.readiness],
    ] as const) {
      listener.readiness = readiness;
      listener.backup = { ok: true, backup };
      closed = 0;
      const { statusCode, headers, payload } = await ask('/v1/backup/3');
      expect(statusCode).toBe(503);
      expect(headers).toMatchObject({ 'content-length': String(payload.length), 'retry-after': '1' });
      expect(headers[SNAPSHOT_HEADER]).toBeUndefined();
      expect(JSON.parse(payload)).toMatchObject({ reason: 'brokenOff' });
      expect(closed).toBeGreaterThan(0);
      listener.readiness = { status: 'ready' };
    }
    expect(listener.logged.filter((line) => line.includes('"level":50'))).toEqual([]);
  });

  it.each([
    ['starting', 503],
    ['noSuchGroup', 404],
    ['notLeader', 409],
    ['busy', 503],
  ] as const)('is refused if this node has none: %s', async (reason, status) => {
    listener.backup = { ok: false, reason };
    const answer = await ask('/v1/backup/3');
    expect([answer.statusCode, answer.json<{ reason: string }>().reason]).toEqual([status, reason]);
  });

  it.each(['x', '-1', '01', '1.5', '9999999999'])('knows no group %s', async (group) => {
    expect((await ask(`/v1/backup/${group}`)).statusCode).toBe(404);
    expect(listener.backups).toEqual([]);
  });

  it.each(['maxBytesPerSecond=0', 'maxBytesPerSecond=x', 'rate=1', 'maxBytesPerSecond=1&a=1'])(
    'refuses the query %s',
    async (query) => {
      listener.backup = { ok: true, backup: played() };
      expect((await ask(`/v1/backup/3?${query}`)).statusCode).toBe(400);
      expect(listener.backups).toEqual([]);
    },
  );

  it('without a token is given only to programs on this machine', async () => {
    listener.backup = { ok: true, backup: played() };
    expect((await ask('/v1/backup/3', { origin: 'http://evil' })).statusCode).toBe(403);
    const elsewhere = await listener.app.inject({
      method: 'GET',
      url: '/v1/backup/3',
      remoteAddress: '10.0.0.7',
    });
    expect([elsewhere.statusCode, listener.backups]).toEqual([403, []]);
  });
});
