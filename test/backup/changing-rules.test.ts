/**
 * Tests a backup while the rules change all the time: it succeeds at the first attempt and has one version of the
 * rules.
 */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { checkBackup } from '../../src/backup/check-backup.ts';
import { restoreCluster } from '../../src/backup/restore-cluster.ts';
import { writeKnownMembers } from '../../src/node/member-cache.ts';
import { type BackupSource, takeBackup } from '../../src/backup/take-backup.ts';
import { clusterSource } from '../../src/cli/cluster-source.ts';
import { eventually, temporaryDirectory, testConfig } from '../cluster/harness.ts';
import { InProcessCluster } from '../cluster/in-process.ts';

const PARTITIONS = 3;
const rulesOf = (limit: number): object[] => [
  { id: 'default', limit, windowMillis: 1_000, clock: 'cluster' },
  { id: 'long', limit, windowMillis: 3_600_000, clock: 'cluster' },
];

describe('a backup while the rules change all the time', () => {
  let root = '';
  let cluster: InProcessCluster;
  let restored: InProcessCluster | undefined;
  let isChanging = true;
  let changing: Promise<void>;
  let changed = 1;

  /** The limit in a version of the rules. */
  const limits = new Map<number, number>();

  async function change(limit: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const asked = { table: { rules: rulesOf(limit) }, ifVersion: undefined };
      cluster.node(1).core.change({ type: 'rules', change: asked }, (result) => {
        if (result.ok) {
          limits.set(result.version, limit);
          changed = result.version;
        }
        resolve();
      });
    });
  }

  beforeAll(async () => {
    root = await temporaryDirectory();
    const rule = { id: 'default', limit: 1_000, windowMillis: 1_000, clock: 'cluster' } as const;
    cluster = await InProcessCluster.create({ rules: [rule], partitions: PARTITIONS });
    await cluster.startAll();
    changing = (async () => {
      for (let limit = 1; isChanging; limit += 1) await change(limit);
    })();
    await eventually('the rules change', () => (changed > 5 ? true : undefined));
  });
  afterAll(async () => {
    isChanging = false;
    await changing;
    await cluster.stop();
    await restored?.stop();
    await rm(root, { recursive: true, force: true });
  });

  it('succeeds, and the restored cluster decides by one version, which is no older than any answered before', async () => {
    const url = `http://127.0.0.1:${cluster.config.nodes[0]?.http.port}`;
    const said: string[] = [];
    const directory = join(root, 'backup');
    const before = changed;
    const inner = clusterSource(url, undefined);
    const source: BackupSource = {
      rulesVersion: () => inner.rulesVersion(),
      open: async (group) => {
        const since = changed;
        await eventually('the rules change', () => (changed > since ? true : undefined));
        return inner.open(group);
      },
    };
    const manifest = await takeBackup({ directory, source, print: (line) => said.push(line) });
    expect(said.filter((line) => /again|over/.test(line))).toEqual([]);
    expect(changed).toBeGreaterThan(before + 2);
    expect(manifest.rulesVersion).toBeGreaterThanOrEqual(before);
    expect(manifest.rulesVersion).toBeLessThanOrEqual(changed + 1);
    isChanging = false;
    await changing;

    const backup = await checkBackup(directory);
    // The purpose of the test: some partitions had other versions than the backup.
    expect([...backup.versions.values()].filter((version) => version < manifest.rulesVersion)).not.toEqual(
      [],
    );
    const data = join(root, 'restored');
    const { config } = await restoreCluster({
      backup,
      data,
      config: await testConfig({ rules: backup.rules.rules, partitions: 1 }),
      isComplete: true,
      withoutTokens: false,
      filled: writeKnownMembers,
    });
    restored = InProcessCluster.of(config, data);
    await restored.startAll();
    for (let partition = 0; partition < PARTITIONS; partition += 1) {
      const { ruleTable } = restored.node(1).core.partitions.get(partition)!;
      expect(ruleTable?.version).toBe(manifest.rulesVersion);
      expect(ruleTable?.rules.map(({ id }) => id)).toEqual(['default', 'long']);
    }
    const answer = await restored.decided(1, { userId: 'ada', ruleId: 'long' });
    expect(answer).toMatchObject({
      kind: 'decision',
      decision: { limit: limits.get(manifest.rulesVersion), rulesVersion: manifest.rulesVersion },
    });
  });
});
