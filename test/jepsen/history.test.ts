import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { HistoryWriter, readHistory } from './history-file.ts';
import { decodeOperation, encodeOperation, operationOf } from './history.ts';
import { NOTHING_JOINT } from './joint-history.ts';
import { decodeBand, encodeBand } from './nemesis-log.ts';
import { randomHistory } from './random-history.ts';

const QUESTION = {
  process: 3,
  user: 'ada',
  rule: 'default',
  node: 2,
  invokeNanos: 1_000,
  limit: 5,
  windowMillis: 1_000,
  cost: 2,
  timestampMillis: null,
  requestId: 'r1',
} as const;

const DECIDED = { partition: 4, term: 2, index: 17, position: 5, timeMillis: 1_234 };

describe('an HTTP attempt as an operation', () => {
  it('is `ok` with a decision, and keeps its receipt', () => {
    const body = { allowed: true, remaining: 3, decided: DECIDED };
    expect(operationOf(QUESTION, 2_000, { kind: 'answer', status: 200, body })).toEqual({
      ...QUESTION,
      completeNanos: 2_000,
      allowed: true,
      status: 200,
      group: 4,
      term: 2,
      index: 17,
      position: 5,
      timeMillis: 1_234,
      remaining: 3,
      class: 'ok',
      error: null,
    });
    const denied = {
      kind: 'answer',
      status: 429,
      body: { allowed: false, remaining: 0, decided: DECIDED },
    } as const;
    expect(operationOf(QUESTION, 2_000, denied)).toMatchObject({ class: 'ok', allowed: false });
  });

  it('is `fail` only if the server or the operating system says that nothing was proposed', () => {
    const unavailable = (proposed?: boolean) =>
      operationOf(QUESTION, 1, { kind: 'answer', status: 503, body: { reason: 'no_leader', proposed } });
    expect(unavailable(false)).toMatchObject({ class: 'fail', allowed: null, error: 'no_leader' });
    expect(unavailable(true).class).toBe('info');
    expect(unavailable().class).toBe('info');
    expect(operationOf(QUESTION, 1, { kind: 'answer', status: 400, body: {} }).class).toBe('fail');
    expect(operationOf(QUESTION, 1, { kind: 'answer', status: 500, body: null }).class).toBe('info');
    expect(operationOf(QUESTION, 1, { kind: 'broken', code: 'ECONNREFUSED', sent: false }).class).toBe(
      'fail',
    );
    expect(operationOf(QUESTION, 1, { kind: 'broken', code: 'ECONNRESET', sent: true }).class).toBe('info');
  });
});

describe('a recorded history', () => {
  let directory: string;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'quorate-history-'));
  });
  afterAll(async () => rm(directory, { recursive: true }));

  it('can be read back unchanged, with the documented fields', async () => {
    const { operations } = randomHistory({ seed: 7, operations: 2_000, isHealthy: false });
    const path = join(directory, 'history.jsonl');
    const writer = new HistoryWriter(path);
    for (const operation of operations) writer.append(operation);
    writer.close();
    expect(await readHistory(path)).toEqual({ history: operations, joint: NOTHING_JOINT, backups: [] });
    const first = operations[0];
    const fields =
      'process user invoke_ns complete_ns limit window_ms cost ts_ms allowed status request_id group index';
    expect(Object.keys(JSON.parse(first === undefined ? '' : encodeOperation(first)))).toEqual(
      expect.arrayContaining([...fields.split(' '), 'term', 'time_ms', 'node', 'class']),
    );
  });

  it('may come from another recorder: a missing field has a default or is refused with its line', async () => {
    const line =
      '{"user":"u","invoke_ns":5,"complete_ns":9,"limit":1,"window_ms":10,"allowed":true,"status":200}';
    expect(decodeOperation(JSON.parse(line), 1)).toMatchObject({
      class: 'ok',
      cost: 1,
      rule: 'default',
      index: null,
    });
    expect(() => decodeOperation({ user: 'u', status: 0 }, 4)).toThrow(/line 4: invoke_ns must be a number/);
    const path = join(directory, 'bad.jsonl');
    await writeFile(path, `${line}\n\n{}\n`);
    await expect(readHistory(path)).rejects.toThrow('line 3: user must be text');
    await writeFile(path, `${line}\n{"user":"u"`);
    await expect(readHistory(path)).rejects.toThrow('line 2 is not JSON');
  });

  it('has a nemesis log in which faults may still be open', () => {
    const band = { kind: 'pause', nodes: [1, 3], startNanos: 5, endNanos: null };
    expect(decodeBand(encodeBand(band))).toEqual(band);
    expect(() => decodeBand('{}')).toThrow('not a nemesis band');
  });
});
