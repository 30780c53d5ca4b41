/**
 * Tests which containers found a cluster together, given the state of their volumes, and which environment variables
 * they accept.
 */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { containerSettings } from '../../src/cli/container-settings.ts';
import {
  type FoundingRecord,
  foundingOf,
  openRecord,
  recordIn,
  writeRecord,
} from '../../src/cli/founding-record.ts';

const WANTED = { founders: 3, partitions: 6 };

function recordOf(nodeId: number, more: Partial<FoundingRecord> = {}): FoundingRecord {
  return { clusterId: 'c', nodeId, incarnation: String(nodeId).repeat(32), ...more };
}

function reported(...records: readonly FoundingRecord[]): ReadonlyMap<number, FoundingRecord> {
  return new Map(records.map((record) => [record.nodeId, record]));
}

const FOUNDING = {
  partitions: 6,
  replicas: 3,
  founders: [1, 2, 3].map((id) => ({ id, incarnation: String(id).repeat(32) })),
};

describe('a cluster', () => {
  it('is founded by the first founder, once all others have answered that they know no cluster', () => {
    expect(foundingOf(recordOf(1), reported(recordOf(2), recordOf(3)), WANTED)).toEqual(FOUNDING);
    expect(foundingOf(recordOf(1), reported(recordOf(2)), WANTED)).toBeUndefined();
    expect(foundingOf(recordOf(2), reported(recordOf(1), recordOf(3)), WANTED)).toBeUndefined();
    expect(foundingOf(recordOf(1), reported(), { founders: 1, partitions: 2 })).toMatchObject({
      replicas: 1,
    });
  });

  it('stores the zones that its founders report', () => {
    const [own, two] = [recordOf(1, { zone: 'a' }), recordOf(2, { zone: 'b' })];
    expect(foundingOf(own, reported(two, recordOf(3)), WANTED)).toEqual({
      ...FOUNDING,
      zones: [
        { id: 1, zone: 'a' },
        { id: 2, zone: 'b' },
      ],
    });
  });

  it('is learned from any container that knows it', () => {
    const knows = recordOf(3, { founding: FOUNDING });
    expect(foundingOf(recordOf(2), reported(knows), WANTED)).toBe(FOUNDING);
    expect(foundingOf(recordOf(1), reported(knows), WANTED)).toBe(FOUNDING);
    expect(foundingOf(recordOf(4), reported(knows), WANTED)).toBe(FOUNDING);
  });

  it('refuses a founder with another volume than at the founding, and is not founded again', () => {
    const knows = recordOf(3, { founding: FOUNDING });
    for (const id of [1, 2]) {
      const lost = recordOf(id, { incarnation: 'f'.repeat(32) });
      expect(() => foundingOf(lost, reported(recordOf(id === 1 ? 2 : 1), knows), WANTED)).toThrow(
        'has another volume than',
      );
    }
  });
});

describe('a cluster without an id', () => {
  const [own, ...others] = [1, 2, 3].map((nodeId) => {
    const { clusterId: _, ...record } = recordOf(nodeId);
    return record;
  }) as [FoundingRecord, FoundingRecord, FoundingRecord];
  const founding = { ...FOUNDING, clusterId: own.incarnation };

  it('gets a unique one at its founding', () => {
    expect(foundingOf(own, reported(...others), WANTED)).toEqual(founding);
    expect(foundingOf(others[0], reported(own, others[1]), WANTED)).toBeUndefined();
    const knows = recordOf(1, { clusterId: own.incarnation, founding });
    expect(foundingOf(others[0], reported(knows), WANTED)).toEqual(founding);
  });

  it('is not joined while the others belong to two clusters', () => {
    const [one, two] = ['a', 'b'].map((clusterId, i) =>
      recordOf(i + 1, { clusterId, founding: { ...FOUNDING, clusterId } }),
    ) as [FoundingRecord, FoundingRecord];
    const { clusterId: _, ...four } = recordOf(4);
    expect(() => foundingOf(four, reported(one, two), WANTED)).toThrow('QUORATE_CLUSTER_ID must be given');
  });
});

describe('a cluster that begins with a backup', () => {
  const [monday, tuesday] = ['a'.repeat(64), 'b'.repeat(64)];
  const alike = [1, 2, 3].map((id) => recordOf(id, { backup: monday }));
  const founded = { ...FOUNDING, backup: monday };

  it('is founded once all founders have the same one', () => {
    const [own, ...others] = alike as [FoundingRecord, FoundingRecord, FoundingRecord];
    expect(foundingOf(own, reported(...others), WANTED)).toEqual(founded);
    expect(foundingOf(own, reported(others[0]), WANTED)).toBeUndefined();
  });

  it.each([
    ['another', tuesday, `node 2 has one with a manifest of SHA-256 ${tuesday}`],
    ['none', undefined, 'node 2 has none'],
  ])('is not founded while one founder has %s', (_, backup, text) => {
    const other = { ...recordOf(2), ...(backup !== undefined && { backup }) };
    const first = recordOf(1, { backup: monday });
    for (const [own, heard] of [
      [first, other],
      [other, first],
      [recordOf(3, { backup: monday }), other],
    ] as const) {
      expect(() => foundingOf(own, reported(heard), WANTED)).toThrow(text);
      expect(() => foundingOf(own, reported(heard), WANTED)).toThrow('QUORATE_RESTORE_FROM must be the same');
    }
  });

  it('is joined by containers without a backup, and expects none of a container that is no founder', () => {
    expect(foundingOf(recordOf(4), reported(...alike), WANTED)).toBeUndefined();
    expect(foundingOf(recordOf(1, { backup: monday }), reported(recordOf(1_001)), WANTED)).toBeUndefined();
    const knows = recordOf(3, { founding: founded });
    expect(foundingOf(recordOf(4), reported(knows), WANTED)).toBe(founded);
    expect(foundingOf(recordOf(2, { backup: tuesday }), reported(knows), WANTED)).toBe(founded);
  });
});

describe('a volume', () => {
  let directory: string;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'quorate-test-'));
  });
  afterAll(() => rm(directory, { recursive: true }));

  it('remembers its cluster and node, and is refused for another one', async () => {
    const own = { clusterId: 'c', nodeId: 2 };
    const record = await openRecord(directory, own);
    expect(record).toEqual({ ...own, incarnation: expect.stringMatching(/^[0-9a-f]{32}$/) });
    for (const founding of [
      FOUNDING,
      { ...FOUNDING, backup: 'a'.repeat(64) },
      { ...FOUNDING, clusterId: 'c', zones: [{ id: 1, zone: 'eu-1a' }] },
    ]) {
      await writeRecord(directory, { ...record, founding, isMade: true });
      expect(await openRecord(directory, own)).toEqual({ ...record, founding, isMade: true });
    }
    // Without an id in the environment, the id of the volume counts.
    expect(await openRecord(directory, { nodeId: 2 })).toMatchObject(own);
    for (const other of [
      { ...own, nodeId: 3 },
      { ...own, clusterId: 'd' },
    ])
      await expect(openRecord(directory, other)).rejects.toThrow('is the volume of node 2 of cluster c');
    await writeFile(
      join(directory, 'founding.json'),
      (await readFile(join(directory, 'founding.json'))).subarray(1),
    );
    await expect(openRecord(directory, own)).rejects.toThrow('founding.json is no record of a volume');
  });

  it('without a cluster id adopts the one that is given later', async () => {
    const empty = await mkdtemp(join(tmpdir(), 'quorate-test-'));
    try {
      const { incarnation } = await openRecord(empty, { nodeId: 1 });
      expect(await openRecord(empty, { nodeId: 1 })).toEqual({ nodeId: 1, incarnation });
      expect(await openRecord(empty, { nodeId: 1, clusterId: 'c' })).toEqual({
        nodeId: 1,
        clusterId: 'c',
        incarnation,
      });
      await expect(openRecord(empty, { nodeId: 1, clusterId: 'd' })).rejects.toThrow('of cluster c');
    } finally {
      await rm(empty, { recursive: true });
    }
  });

  it.each([
    ['', 'JSON'],
    ['[]', 'record must be an object'],
    [JSON.stringify({ ...recordOf(1), nodeId: 0 }), 'nodeId'],
    [JSON.stringify({ ...recordOf(1), incarnation: 'x' }), 'incarnation'],
    [JSON.stringify({ ...recordOf(1), other: 1 }), 'record.other'],
    [JSON.stringify({ ...recordOf(1), zone: 'a b' }), 'zone must be 1 to 128 letters'],
    [
      JSON.stringify({ ...recordOf(1), founding: { ...FOUNDING, zones: [{ id: 0, zone: 'a' }] } }),
      'founding.zones[0].id',
    ],
    [JSON.stringify({ ...recordOf(1), backup: 'A'.repeat(64) }), 'backup must be 64 hexadecimal digits'],
    [
      JSON.stringify({ ...recordOf(1), founding: { ...FOUNDING, backup: 1 } }),
      'founding.backup must be 64 hexadecimal digits',
    ],
    [JSON.stringify({ ...recordOf(1), founding: { ...FOUNDING, founders: [] } }), 'founders'],
    [
      JSON.stringify({ ...recordOf(1), founding: { ...FOUNDING, founders: [{ id: 1 }] } }),
      'founders[0].incarnation',
    ],
  ])('with the record %s is refused', (text, what) => {
    expect(() => recordIn(text, 'there')).toThrow(what);
  });
});

describe('the environment of a container', () => {
  const GOOD = { QUORATE_CLUSTER_ID: 'c', QUORATE_HOST: 'q-{ordinal}.q', HOSTNAME: 'q-2' };

  it('names the node, and the addresses of the others', async () => {
    const { addressOf, ...settings } = await containerSettings(GOOD);
    expect(settings).toEqual({
      clusterId: 'c',
      ordinal: 2,
      nodeId: 3,
      founders: 3,
      listen: '0.0.0.0',
      foundingPort: 7_100,
      data: '/data',
      local: {},
      insecure: false,
      logFormat: 'auto',
    });
    const host = 'q-1.q';
    expect(addressOf(1)).toEqual({
      id: 2,
      http: { host, port: 8_100 },
      peer: { host, port: 9_100 },
      resp: { host, port: 10_100 },
      grpc: { host, port: 11_100 },
    });
  });

  it('may map ordinals to other ids, and set the ordinal', async () => {
    const { nodeId, addressOf } = await containerSettings({
      ...GOOD,
      QUORATE_ORDINAL: '1',
      QUORATE_NODE_IDS: '1:1001, 3:1009',
    });
    expect([nodeId, addressOf(0).id, addressOf(3).id]).toEqual([1001, 1, 1009]);
  });

  it('may set the number of partitions, and a backup', async () => {
    const stated = { ...GOOD, QUORATE_PARTITIONS: '9', QUORATE_RESTORE_FROM: '/backup' };
    expect(await containerSettings(stated)).toMatchObject({ partitions: 9, restoreFrom: '/backup' });
  });

  it('may set the level and the format of the log', async () => {
    const stated = { ...GOOD, QUORATE_LOG_LEVEL: 'warn', QUORATE_LOG_FORMAT: 'json' };
    expect(await containerSettings(stated)).toMatchObject({ logLevel: 'warn', logFormat: 'json' });
  });

  it.each<[Record<string, string>, string]>([
    [{ QUORATE_HOST: '' }, 'QUORATE_HOST must be set'],
    [
      { QUORATE_LOG_LEVEL: 'loud' },
      'QUORATE_LOG_LEVEL must be one of trace, debug, info, warn, error, fatal',
    ],
    [{ QUORATE_LOG_FORMAT: 'xml' }, 'QUORATE_LOG_FORMAT must be one of auto, pretty, json'],
    [{ QUORATE_HOST: 'q' }, 'QUORATE_HOST must have {ordinal}'],
    [{ QUORATE_HOST: 'q {ordinal}' }, 'QUORATE_HOST must be a host name'],
    [{ HOSTNAME: 'q' }, 'QUORATE_ORDINAL must be an integer'],
    [{ QUORATE_ORDINAL: '-1' }, 'QUORATE_ORDINAL must be an integer'],
    [{ QUORATE_PARTITIONS: '0' }, 'QUORATE_PARTITIONS must be an integer from 1 to 4096'],
    [{ QUORATE_FOUNDERS: '65' }, 'QUORATE_FOUNDERS must be an integer from 1 to 64'],
    [{ QUORATE_HTTP_PORT: '8e3' }, 'QUORATE_HTTP_PORT must be an integer from 1 to 65535'],
    [{ QUORATE_NODE_IDS: '1=1001' }, 'QUORATE_NODE_IDS must be a list'],
    [{ QUORATE_NODE_IDS: '1:1001,2:1001' }, 'QUORATE_NODE_IDS must be a list'],
    [{ QUORATE_NODE_IDS: '1:5' }, 'from 1001 on'],
    [{ QUORATE_ZONE: 'a b' }, 'QUORATE_ZONE must be 1 to 128 letters'],
    [{ QUORATE_INSECURE: 'yes' }, 'QUORATE_INSECURE must be true or false'],
    [{ QUORATE_SETTINGS: '/nowhere' }, 'QUORATE_SETTINGS /nowhere cannot be read'],
  ])('is refused with %j', async (changes, message) => {
    await expect(containerSettings({ ...GOOD, ...changes })).rejects.toThrow(message);
  });

  it('may set a zone, and an empty one is none', async () => {
    expect(await containerSettings({ ...GOOD, QUORATE_ZONE: 'eu-1a' })).toMatchObject({ zone: 'eu-1a' });
    expect(await containerSettings({ ...GOOD, QUORATE_ZONE: '' })).not.toHaveProperty('zone');
  });

  it('may leave the cluster id to the founding', async () => {
    expect(await containerSettings({ ...GOOD, QUORATE_CLUSTER_ID: '' })).not.toHaveProperty('clusterId');
  });

  it('takes settings from several files, and the cluster id from one', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'quorate-test-'));
    const [one, two] = [join(directory, 'one.json'), join(directory, 'two.json')];
    const both = { ...GOOD, QUORATE_SETTINGS: `${one}, ${two}` };
    try {
      await writeFile(one, JSON.stringify({ clusterId: 'c', leaders: 'spread' }));
      await writeFile(two, JSON.stringify({ freeFloorBytes: 1 }));
      for (const stated of ['c', '']) {
        const { clusterId, local } = await containerSettings({ ...both, QUORATE_CLUSTER_ID: stated });
        expect([clusterId, local]).toEqual(['c', { leaders: 'spread', freeFloorBytes: 1 }]);
      }
      await expect(containerSettings({ ...both, QUORATE_CLUSTER_ID: 'd' })).rejects.toThrow(
        'QUORATE_CLUSTER_ID must be c, as in QUORATE_SETTINGS, or unset: it is d',
      );
      await writeFile(two, JSON.stringify({ leaders: 'spread' }));
      await expect(containerSettings(both)).rejects.toThrow(
        `${two} must not hold leaders: another of these files has it`,
      );
      await writeFile(one, JSON.stringify({ clusterId: 7 }));
      await expect(containerSettings(both)).rejects.toThrow('must have text as clusterId');
    } finally {
      await rm(directory, { recursive: true });
    }
  });

  it('takes settings of cluster.json from a file, and no facts', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'quorate-test-'));
    const path = join(directory, 'settings.json');
    try {
      await writeFile(path, JSON.stringify({ http: { userHeader: 'x-user' } }));
      const { local } = await containerSettings({ ...GOOD, QUORATE_SETTINGS: path });
      expect(local).toEqual({ http: { userHeader: 'x-user' } });
      await writeFile(path, JSON.stringify({ partitions: 7 }));
      await expect(containerSettings({ ...GOOD, QUORATE_SETTINGS: path })).rejects.toThrow(
        'must not hold partitions',
      );
      await writeFile(path, '{"http":{"userHeader":"a","userHeader":"b"}}');
      await expect(containerSettings({ ...GOOD, QUORATE_SETTINGS: path })).rejects.toThrow(
        'must have http.userHeader once',
      );
    } finally {
      await rm(directory, { recursive: true });
    }
  });
});
