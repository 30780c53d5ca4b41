/** Tests the validation of `cluster.json`. */
import { describe, expect, it } from 'vitest';
import { LOCAL_DEFAULTS, localAddress, localConfig } from '../../src/config/cluster-directory.ts';
import { type ClusterConfig, ConfigError, TIMING_DEFAULTS, validateConfig } from '../../src/config/config.ts';
import { DEFAULT_FREE_FLOOR_BYTES } from '../../storage/free-space.ts';

function node(id: unknown): { id: unknown; http: object; peer: object } {
  const port = typeof id === 'number' ? 8_100 + id : 8_100;
  return { id, http: { host: '127.0.0.1', port }, peer: { host: '127.0.0.1', port: port + 1_000 } };
}

function founders(count: number): { id: number; incarnation: string }[] {
  return Array.from({ length: count }, (_, i) => ({ id: i + 1, incarnation: `${i % 10}`.repeat(32) }));
}

const RULE = { id: 'default', limit: 100, windowMillis: 60_000, clock: 'request' };
const VALID = {
  clusterId: 'c-1',
  founders: founders(3),
  nodes: [node(1), node(2), node(3)],
  partitions: 16,
  replicas: 3,
  rules: { rules: [RULE] },
};

function refusal(value: unknown): ConfigError {
  try {
    validateConfig(value);
  } catch (error) {
    if (error instanceof ConfigError) return error;
    throw error;
  }
  throw new Error('it was accepted');
}

describe('a configuration', () => {
  it('gets the defaults for optional fields', () => {
    const config = validateConfig(VALID);
    expect(config).toMatchObject({
      ...VALID,
      timing: TIMING_DEFAULTS,
      freeFloorBytes: DEFAULT_FREE_FLOOR_BYTES,
    });
    expect(config.timing).toEqual({
      tickMillis: 10,
      heartbeatMillis: 50,
      electionMillis: 300,
      requestDeadlineMillis: 1_000,
    });
    expect(config.rules).toMatchObject({ requestIdHorizonMillis: 120_000, clockDriftPpm: 500 });
  });

  it('keeps the given values, also after a round trip through JSON', () => {
    const given = {
      ...VALID,
      timing: { tickMillis: 5, heartbeatMillis: 20, electionMillis: 100, requestDeadlineMillis: 250 },
      freeFloorBytes: 0,
    };
    const config = validateConfig(given);
    expect(config.timing).toEqual(given.timing);
    expect(config.freeFloorBytes).toBe(0);
    expect(validateConfig(JSON.parse(JSON.stringify(config)))).toEqual(config);
  });

  it.each([
    ['partitons', { ...VALID, partitons: 3 }],
    ['timing.heartbeatMilis', { ...VALID, timing: { heartbeatMilis: 20 } }],
    ['nodes[1].hhtp', { ...VALID, nodes: [node(1), { ...node(2), hhtp: {} }] }],
    ['nodes[0].http.prot', { ...VALID, nodes: [{ ...node(1), http: { host: 'a', port: 1, prot: 2 } }] }],
    ['founders[0].name', { ...VALID, founders: [{ ...founders(1)[0], name: 'a' }] }],
    ['rules.clockDriftPmp', { ...VALID, rules: { ...VALID.rules, clockDriftPmp: 1 } }],
  ])('with a misspelt key is refused: %s', (field, value) => {
    expect(refusal(value).field).toBe(field);
    expect(refusal(value).message).toContain(`${field} is not known; known here are `);
  });

  it('with a misspelt key of a rule is refused', () => {
    const { field, message } = refusal({ ...VALID, rules: { rules: [{ ...RULE, windowMilis: 1 }] } });
    expect(field).toBe('rules.rules[0].windowMilis');
    expect(message).toContain('must be absent: the fields of a rule are id, of, limit, windowMillis');
  });

  it('has a limit for the state only if it is given', () => {
    expect(validateConfig(VALID)).not.toHaveProperty('stateBytesMax');
    expect(validateConfig({ ...VALID, stateBytesMax: 65_536 }).stateBytesMax).toBe(65_536);
    expect(refusal({ ...VALID, stateBytesMax: 65_535 }).message).toMatch(
      /^stateBytesMax must be .* 65536 to/,
    );
    expect(validateConfig(VALID).rules.partitionBytesMax).toBe(268_435_456);
  });

  it('has a snapshot interval only if it is given', () => {
    expect(validateConfig(VALID)).not.toHaveProperty('snapshotEveryBytes');
    expect(validateConfig({ ...VALID, snapshotEveryBytes: 1_024 }).snapshotEveryBytes).toBe(1_024);
    for (const snapshotEveryBytes of [1_023, 1.5, 2 ** 30 + 1]) {
      expect(refusal({ ...VALID, snapshotEveryBytes }).message).toBe(
        'snapshotEveryBytes must be an integer from 1024 to 1073741824',
      );
    }
  });

  it('has HTTP settings only if they are given', () => {
    expect(validateConfig(VALID)).not.toHaveProperty('http');
    expect(validateConfig({ ...VALID, http: {} }).http).toEqual({ rateLimitHeaders: ['x', 'draft'] });
    const http = {
      rateLimitHeaders: ['draft6', 'x', 'draft'],
      userHeader: 'X-User-Id',
      trustedProxies: ['::1', '10.0.0.0/8'],
      keepAliveMillis: 610_000,
    };
    const config = validateConfig({ ...VALID, http });
    expect(config.http).toEqual({ ...http, userHeader: 'x-user-id' });
    expect(validateConfig(JSON.parse(JSON.stringify(config)))).toEqual(config);
    expect(validateConfig({ ...VALID, http: { rateLimitHeaders: [] } }).http).toEqual({
      rateLimitHeaders: [],
    });
  });

  it.each([
    [{ rateLimitHeaders: 'x' }, 'http.rateLimitHeaders', 'a list of some of x, draft6, draft'],
    [{ rateLimitHeaders: ['X'] }, 'http.rateLimitHeaders', 'a list of some of x, draft6, draft'],
    [{ rateLimitHeaders: ['x', 'x'] }, 'http.rateLimitHeaders', 'each at most once'],
    [{ userHeader: '' }, 'http.userHeader', 'of 1 to 64'],
    [{ userHeader: 'x'.repeat(65) }, 'http.userHeader', 'of 1 to 64'],
    [{ userHeader: 'x user' }, 'http.userHeader', 'the name of a header'],
    [{ userHeader: 'x-user:' }, 'http.userHeader', 'the name of a header'],
    [{ userHeader: 7 }, 'http.userHeader', 'the name of a header'],
    [{ userHeaders: 'x' }, 'http.userHeaders', 'known here are rateLimitHeaders, userHeader'],
    [{ trustedProxies: '10.0.0.1' }, 'http.trustedProxies', 'a list of at most 64'],
    [{ trustedProxies: ['10.0.0.1', '10.0.0.0/33'] }, 'http.trustedProxies[1]', 'an address or a network'],
    [{ trustedProxies: ['gateway'] }, 'http.trustedProxies[0]', 'an address or a network'],
    [{ trustedProxies: ['fe80::1%eth0'] }, 'http.trustedProxies[0]', 'an address or a network'],
    [{ keepAliveMillis: 999 }, 'http.keepAliveMillis', 'from 1000 to 3600000'],
    [{ keepAliveMillis: '75s' }, 'http.keepAliveMillis', 'from 1000 to 3600000'],
    [[], 'http', 'must be an object'],
  ])('with %j for its HTTP listener is refused naming the field and its bound', (http, field, bound) => {
    const error = refusal({ ...VALID, http });
    expect(error.field).toBe(field);
    expect(error.message).toContain(bound);
  });

  it.each([
    [1_000, 100, 2_002],
    [250, 0, 501],
    [60_000, 500, 120_073],
  ])(
    'that forgets request ids before two deadlines have passed is refused: %i ms, %i ppm',
    (requestDeadlineMillis, clockDriftPpm, neededMillis) => {
      const withHorizon = (requestIdHorizonMillis: number): unknown => ({
        ...VALID,
        timing: { requestDeadlineMillis },
        rules: { ...VALID.rules, clockDriftPpm, requestIdHorizonMillis },
      });
      const error = refusal(withHorizon(neededMillis - 1));
      expect(error.field).toBe('rules.requestIdHorizonMillis');
      expect(error.message).toContain(`at least ${neededMillis}`);
      expect(error.message).toContain(`(${requestDeadlineMillis})`);
      expect(error.message).toContain(`is ${neededMillis - 1}`);
      const rules = validateConfig(withHorizon(neededMillis)).rules;
      expect(rules.requestIdHorizonMillis).toBe(neededMillis);
    },
  );

  it('may contain only some fields of the timing', () => {
    expect(validateConfig({ ...VALID, timing: { electionMillis: 1_000 } }).timing).toEqual({
      ...TIMING_DEFAULTS,
      electionMillis: 1_000,
    });
  });

  it.each<[string, unknown, string, string]>([
    ['null', null, 'config', 'must be an object'],
    ['an array', [], 'config', 'must be an object'],
    ['no cluster id', { ...VALID, clusterId: undefined }, 'clusterId', '1 to 128 characters'],
    ['an empty cluster id', { ...VALID, clusterId: '' }, 'clusterId', '1 to 128 characters'],
    ['a long cluster id', { ...VALID, clusterId: 'c'.repeat(129) }, 'clusterId', '1 to 128 characters'],
    ['no nodes', { ...VALID, nodes: [] }, 'nodes', '1 to 256 nodes'],
    ['nodes by name', { ...VALID, nodes: { 1: node(1) } }, 'nodes', '1 to 256 nodes'],
    [
      'too many nodes',
      { ...VALID, nodes: Array.from({ length: 257 }, (_, i) => node(i + 1)) },
      'nodes',
      '1 to 256 nodes',
    ],
    ['a node that is a number', { ...VALID, nodes: [1] }, 'nodes[0]', 'must be an object'],
    ['node 0', { ...VALID, nodes: [node(0)] }, 'nodes[0].id', '1 to 2147483647'],
    ['node 2^31', { ...VALID, nodes: [node(1), node(2 ** 31)] }, 'nodes[1].id', '1 to 2147483647'],
    ['node "1"', { ...VALID, nodes: [node('1')] }, 'nodes[0].id', '1 to 2147483647'],
    [
      'the same node twice',
      { ...VALID, nodes: [node(1), node(2), node(1)] },
      'nodes[2].id',
      'but 1 was used before',
    ],
    ['no http', { ...VALID, nodes: [{ ...node(1), http: undefined }] }, 'nodes[0].http', 'must be an object'],
    ['no host', { ...VALID, nodes: [{ ...node(1), peer: { port: 1 } }] }, 'nodes[0].peer.host', 'host name'],
    [
      'port 65536',
      { ...VALID, nodes: [{ ...node(1), http: { host: 'a', port: 65_536 } }] },
      'nodes[0].http.port',
      '0 to 65535',
    ],
    ['no partitions', { ...VALID, partitions: 0 }, 'partitions', '1 to 4096'],
    ['too many partitions', { ...VALID, partitions: 4_097 }, 'partitions', '1 to 4096'],
    ['half a partition', { ...VALID, partitions: 0.5 }, 'partitions', '1 to 4096'],
    ['no replicas', { ...VALID, replicas: 0 }, 'replicas', '1 to 3'],
    ['no founders', { ...VALID, founders: undefined }, 'founders', 'that the cluster was created with'],
    ['an empty list of founders', { ...VALID, founders: [] }, 'founders', '1 to 64 nodes'],
    ['too many founders', { ...VALID, founders: founders(65) }, 'founders', '1 to 64 nodes'],
    ['founders by id', { ...VALID, founders: [1, 2, 3] }, 'founders[0]', 'must be an object'],
    [
      'the same founder twice',
      { ...VALID, founders: [...founders(1), ...founders(2)] },
      'founders[1].id',
      'but 1 was used before',
    ],
    [
      'a founder without an incarnation',
      { ...VALID, founders: [{ id: 1 }] },
      'founders[0].incarnation',
      '32 hexadecimal digits',
    ],
    ['more replicas than founders', { ...VALID, replicas: 4 }, 'replicas', '1 to 3'],
    [
      'too many replicas',
      { ...VALID, founders: founders(9), nodes: [1, 2, 3, 4, 5, 6, 7, 8, 9].map(node), replicas: 8 },
      'replicas',
      '1 to 7',
    ],
    ['timing 7', { ...VALID, timing: 7 }, 'timing', 'must be an object'],
    ['no ticks', { ...VALID, timing: { tickMillis: 0 } }, 'timing.tickMillis', '1 to 1000'],
    [
      'a heartbeat below a tick',
      { ...VALID, timing: { tickMillis: 60 } },
      'timing.heartbeatMillis',
      '60 to 10000',
    ],
    [
      'an election below two heartbeats',
      { ...VALID, timing: { heartbeatMillis: 200 } },
      'timing.electionMillis',
      '400 to 60000',
    ],
    [
      'a deadline below a tick',
      { ...VALID, timing: { requestDeadlineMillis: 9 } },
      'timing.requestDeadlineMillis',
      '10 to 60000',
    ],
    ['a negative floor', { ...VALID, freeFloorBytes: -1 }, 'freeFloorBytes', '0 to 9007199254740991'],
  ])('is refused naming the field and its bound: %s', (_what, value, field, bound) => {
    const error = refusal(value);
    expect(error).toMatchObject({ name: 'ConfigError', code: 'CONFIG', field });
    expect(error.message).toContain(bound);
    expect(error.message.startsWith(`${field} `)).toBe(true);
  });

  it('is refused if its rules are, with the reason', () => {
    expect(refusal({ ...VALID, rules: undefined }).message).toContain('rules must be an object');
    const negative = { rules: [{ ...RULE, limit: -1 }] };
    expect(refusal({ ...VALID, rules: negative }).message).toContain(
      'rules[0].limit must be an integer from 0 to 1000000',
    );
  });

  it('names the path of a bad rule like that of any other field', () => {
    const error = refusal({ ...VALID, rules: { rules: [{ ...RULE, limit: -1 }] } });
    expect(error.field).toBe('rules.rules[0].limit');
    expect(error.message).toBe('rules.rules[0].limit must be an integer from 0 to 1000000, but is -1');
  });

  it('may list nodes that did not create the cluster, and omit some that did', () => {
    const nodes = [node(3), node(4), node(5)];
    expect(validateConfig({ ...VALID, nodes })).toMatchObject({ founders: founders(3), nodes });
  });

  it('is refused if two nodes have the same address', () => {
    const twins = [node(1), { ...node(2), peer: node(1).peer }];
    expect(refusal({ ...VALID, nodes: twins, replicas: 2 }).field).toBe('nodes[1].peer');
  });

  it('may have Redis listeners for nodes, or none', () => {
    const resp = { host: '127.0.0.1', port: 7 };
    const nodes = [{ ...node(1), resp }, node(2)];
    expect(validateConfig({ ...VALID, nodes }).nodes).toEqual(nodes);
    const twins = [
      { ...node(1), resp },
      { ...node(2), resp },
    ];
    expect(refusal({ ...VALID, nodes: twins }).field).toBe('nodes[1].resp');
    expect(refusal({ ...VALID, nodes: [{ ...node(1), resp: {} }] }).field).toBe('nodes[0].resp.host');
  });
});

describe('a local cluster', () => {
  it('has three copies of each partition, one rule, and a unique id', () => {
    const config: ClusterConfig = localConfig(LOCAL_DEFAULTS);
    expect(config).toMatchObject({ partitions: 6, replicas: 3, timing: TIMING_DEFAULTS });
    expect(config.nodes.map(({ id, http, peer, resp }) => [id, http.port, peer.port, resp?.port])).toEqual([
      [1, 8_101, 9_101, 10_101],
      [2, 8_102, 9_102, 10_102],
      [3, 8_103, 9_103, 10_103],
    ]);
    expect(config.rules.rules).toEqual([RULE]);
    expect(localConfig(LOCAL_DEFAULTS).clusterId).not.toBe(config.clusterId);
  });

  it.each([
    [1, 1],
    [2, 2],
    [3, 3],
    [5, 3],
  ])('of %i nodes has %i copies', (nodes, replicas) => {
    expect(localConfig({ ...LOCAL_DEFAULTS, nodes }).replicas).toBe(replicas);
  });

  it('gives every node its own ports, on loopback', () => {
    const ids = Array.from({ length: 64 }, (_, i) => i + 1);
    const addresses = ids
      .map((id) => localAddress(id, 20_000))
      .flatMap(({ http, peer, resp }) => [http, peer, resp]);
    expect(new Set(addresses.map((address) => address?.port)).size).toBe(192);
    expect(new Set(addresses.map((address) => address?.host))).toEqual(new Set(['127.0.0.1']));
  });

  it.each([
    ['no nodes', { nodes: 0 }, 'nodes'],
    ['too many nodes', { nodes: 65 }, 'nodes'],
    ['no partitions', { partitions: 0 }, 'partitions'],
    ['ports beyond the last', { basePort: 65_000 }, 'nodes[0].peer.port'],
  ])('is refused with %s', (_what, options, field) => {
    expect(() => localConfig({ ...LOCAL_DEFAULTS, ...options })).toThrow(
      expect.objectContaining({ code: 'CONFIG', field }),
    );
  });

  it('is refused with a huge number of nodes before they are listed', () => {
    expect(() => localConfig({ ...LOCAL_DEFAULTS, nodes: 2 ** 32 })).toThrow(ConfigError);
  });
});
