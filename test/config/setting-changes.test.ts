/** Tests which settings a running node applies and which need a restart, for every setting. */
import { describe, expect, it } from 'vitest';
import { LOCAL_DEFAULTS, localConfig } from '../../src/config/cluster-directory.ts';
import { type ClusterConfig, validateConfig } from '../../src/config/config.ts';
import { settingChanges, withLive } from '../../src/config/setting-changes.ts';

const BEFORE = localConfig(LOCAL_DEFAULTS);
const TLS = { ca: 'ca.crt', cert: 'a.crt', key: 'a.key' };
/** A configuration in which everything except the facts differs. */
const AFTER = validateConfig({
  ...BEFORE,
  nodes: BEFORE.nodes.slice(1),
  rules: { ...BEFORE.rules, clockDriftPpm: 600 },
  timing: { ...BEFORE.timing, electionMillis: 400 },
  freeFloorBytes: 1,
  stateBytesMax: 100_000,
  snapshotEveryBytes: 2_000,
  leaders: 'spread',
  logLevel: 'error',
  http: {
    rateLimitHeaders: [],
    userHeader: 'x-user',
    trustedProxies: ['10.0.0.0/8'],
    keepAliveMillis: 2_000,
  },
  rls: { responseHeaders: true },
  tls: TLS,
  tokens: [],
});

describe('changes of a configuration', () => {
  it('are reported field by field, and every field is covered', () => {
    const { live, atStart } = settingChanges(BEFORE, AFTER);
    expect(live).toEqual([
      { field: 'logLevel', from: undefined, to: 'error' },
      { field: 'http.rateLimitHeaders', from: ['x', 'draft'], to: [] },
      { field: 'http.userHeader', from: undefined, to: 'x-user' },
      { field: 'http.trustedProxies', from: undefined, to: ['10.0.0.0/8'] },
      { field: 'http.keepAliveMillis', from: undefined, to: 2_000 },
      { field: 'rls.responseHeaders', from: false, to: true },
      { field: 'freeFloorBytes', from: BEFORE.freeFloorBytes, to: 1 },
      { field: 'stateBytesMax', from: undefined, to: 100_000 },
    ]);
    expect(atStart).toEqual([
      'nodes',
      'rules.clockDriftPpm',
      'timing.electionMillis',
      'snapshotEveryBytes',
      'leaders',
      'tls',
      'tokens',
    ]);
    const facts = ['clusterId', 'founders', 'partitions', 'replicas'];
    const reported = [...live.map(({ field }) => field), ...atStart].map((field) => field.split('.')[0]);
    expect(new Set([...reported, ...facts])).toEqual(new Set(Object.keys(AFTER)));
  });

  it('are empty if only defaults are written out', () => {
    const same: ClusterConfig = {
      ...BEFORE,
      http: { rateLimitHeaders: ['x', 'draft'] },
      rls: { responseHeaders: false },
    };
    expect(settingChanges(BEFORE, same)).toEqual({ live: [], atStart: [] });
  });

  it.each(['clusterId', 'founders', 'partitions', 'replicas'] as const)(
    'are refused if a fact differs: %s',
    (fact) => {
      const other = { ...BEFORE, [fact]: fact === 'founders' ? [] : 1 };
      expect(() => settingChanges(BEFORE, other)).toThrow(`${fact} is fixed for good`);
    },
  );

  it('that wait for a restart are reported again, applied ones are not', () => {
    const running = withLive(BEFORE, AFTER);
    expect(settingChanges(running, AFTER).live).toEqual([]);
    expect(settingChanges(running, AFTER).atStart).toHaveLength(7);
    const back = settingChanges(withLive(running, BEFORE), BEFORE);
    expect(back).toEqual({ live: [], atStart: [] });
  });
});
