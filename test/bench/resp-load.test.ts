/** Tests the RESP loads of the bench with fake servers. */
import keySlot from 'cluster-key-slot';
import { afterEach, describe, expect, test } from 'vitest';
import { encodeCommand, encodePipelines } from '../../bench/load/encoded-requests.ts';
import type { RespForm, RespJob } from '../../bench/load/load-job.ts';
import { respLoad } from '../../bench/load/resp-load.ts';
import { slotOwners } from '../../bench/load/slot-owners.ts';
import { type KeyChooser, type LoadRequest, workloadOf } from '../../bench/workloads.ts';
import { type FakeServer, fakeRespServer } from './fake-resp-server.ts';
import { measuredSomething } from './measured.ts';

const FORM: RespForm = {
  commands: { open: ['ALLOW', '{key}'], spent: ['ALLOW', '{key}', '1'], small: ['ALLOW', '{key}', '10'] },
  grantValue: 1,
  waitForReplicas: 0,
};
const MIDDLE_SLOT = 8_192;

const servers: FakeServer[] = [];

async function started(answer: (args: readonly string[]) => string): Promise<FakeServer> {
  const server = await fakeRespServer(answer);
  servers.push(server);
  return server;
}

afterEach(() => {
  for (const { server } of servers.splice(0)) server.close();
});

function always(request: LoadRequest): KeyChooser {
  return () => request;
}

/** One row of the answer to CLUSTER SLOTS. */
function slotRow(first: number, last: number, { address }: FakeServer): string {
  return `*3\r\n:${first}\r\n:${last}\r\n*2\r\n$9\r\n${address.host}\r\n:${address.port}\r\n`;
}

function jobFor(server: FakeServer, more: Partial<RespJob> = {}): RespJob {
  return {
    kind: 'resp',
    workload: 'mixed',
    seed: 1,
    addresses: [server.address],
    connections: 4,
    warmUpMillis: 10,
    measuredMillis: 100,
    form: FORM,
    pipeline: 8,
    isClusterAware: false,
    ...more,
  };
}

describe('encoded requests', () => {
  test('are the commands for their rules, with lengths in bytes', () => {
    const written = encodePipelines(always({ key: 'zoë', rule: 'spent' }), FORM, { requests: 1, depth: 1 });
    expect(written.pipeline(0).toString()).toBe('*3\r\n$5\r\nALLOW\r\n$4\r\nzoë\r\n$1\r\n1\r\n');
  });

  test('are followed by a WAIT if replicas must have them', () => {
    const form = { ...FORM, waitForReplicas: 1 };
    const written = encodePipelines(always({ key: 'a', rule: 'open' }), form, { requests: 4, depth: 2 });
    const pipeline = [
      ['ALLOW', 'a'],
      ['ALLOW', 'a'],
      ['WAIT', '1', '1000'],
    ]
      .map(encodeCommand)
      .join('');
    expect(written.pipelines).toBe(2);
    expect(written.pipeline(1).toString()).toBe(pipeline);
  });

  test('are the drawn requests, pipeline by pipeline', () => {
    const drawn = workloadOf('grants').chooser(5);
    const written = encodePipelines(workloadOf('grants').chooser(5), FORM, { requests: 20, depth: 4 });
    expect(written.pipelines).toBe(5);
    for (let at = 0; at < 5; at += 1) {
      const expected = Array.from({ length: 4 }, () => encodeCommand(['ALLOW', drawn().key])).join('');
      expect(written.pipeline(at).toString()).toBe(expected);
    }
  });

  test('are refused if no rule accepts them', () => {
    const next = workloadOf('abuse').chooser(1);
    expect(() => encodePipelines(next, FORM, { requests: 1, depth: 1 }, () => false)).toThrow(RangeError);
  });
});

describe('slots', () => {
  const asked = { host: '10.0.0.1', port: 7_000 };

  test('are CRC16 of the key, or of its tag', () => {
    expect(keySlot('123456789')).toBe(0x31c3);
    expect(keySlot('{user1000}.following')).toBe(keySlot('{user1000}.followers'));
  });

  test('belong to the first node of their row', () => {
    const owners = slotOwners(
      [
        [0, 99, ['10.0.0.2', 7_001, 'a'], ['10.0.0.3', 7_002, 'b']],
        [100, 199, ['', 7_003, 'c']],
        [300, 16_383, ['10.0.0.2', 7_001, 'a']],
      ],
      asked,
    );
    expect(owners.nodes).toEqual([
      { host: '10.0.0.2', port: 7_001 },
      { host: '10.0.0.1', port: 7_003 },
    ]);
    expect([0, 99, 100, 199, 200, 299, 300, 16_383].map((slot) => owners.ownerOf(slot))).toEqual([
      0, 0, 1, 1, -1, -1, 0, 0,
    ]);
  });

  test('are refused if the answer has another form', () => {
    expect(() => slotOwners('OK', asked)).toThrow(TypeError);
    expect(() => slotOwners([[0, 'all', ['h', 1]]], asked)).toThrow(TypeError);
  });
});

describe('load over RESP', () => {
  test('counts answers by kind', async () => {
    const server = await started((args) => (args.length === 2 ? ':1\r\n' : ':0\r\n'));
    const { grants, denials, errors } = await measuredSomething(() =>
      respLoad(jobFor(server), () => undefined),
    );
    expect(grants).toBeGreaterThan(0);
    expect(denials).toBeGreaterThan(0);
    expect(errors).toBe(0);
  });

  test('counts grants that too few replicas have as errors', async () => {
    const server = await started(([name]) => (name === 'WAIT' ? ':0\r\n' : ':1\r\n'));
    const job = jobFor(server, { form: { ...FORM, waitForReplicas: 1 } });
    const { grants, errors } = await measuredSomething(() => respLoad(job, () => undefined));
    expect(grants).toBe(0);
    expect(errors).toBeGreaterThan(0);
  });

  test('sends each node only keys of its slots', async () => {
    const foreign: string[] = [];
    const asked = [0, 0];
    let slots = '*0\r\n';
    const node = async (index: number, owns: (slot: number) => boolean): Promise<FakeServer> =>
      started(([name, key = '']) => {
        if (name === 'CLUSTER') return slots;
        if (name === 'INFO') return '$0\r\n\r\n';
        if (name !== 'ALLOW') return '+OK\r\n';
        asked[index] = (asked[index] ?? 0) + 1;
        if (!owns(keySlot(key))) foreign.push(key);
        return ':1\r\n';
      });
    const low = await node(0, (slot) => slot < MIDDLE_SLOT);
    const high = await node(1, (slot) => slot >= MIDDLE_SLOT);
    slots = `*2\r\n${slotRow(0, MIDDLE_SLOT - 1, low)}${slotRow(MIDDLE_SLOT, 16_383, high)}`;
    const { errors } = await respLoad(jobFor(low, { isClusterAware: true }), () => undefined);
    expect(errors).toBe(0);
    expect(foreign).toEqual([]);
    expect(Math.min(...asked)).toBeGreaterThan(0);
  });

  test('fails if the server ends a connection or does not speak RESP', async () => {
    const other = await started(() => 'HTTP/1.1 400 Bad Request\r\n');
    await expect(respLoad(jobFor(other), () => undefined)).rejects.toThrow('no type of RESP');
    const chatty = await started(() => ':1\r\n:1\r\n');
    await expect(respLoad(jobFor(chatty), () => undefined)).rejects.toThrow('answers to');
    const leaving = await started(() => ':1\r\n');
    leaving.server.on('connection', (socket) => socket.end());
    await expect(respLoad(jobFor(leaving), () => undefined)).rejects.toThrow('ended a connection');
  });
});
