/** Tests the operation metrics of a started node. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually, WAIT_MILLIS_MAX } from '../cluster/harness.ts';
import { InProcessCluster } from '../cluster/in-process.ts';

const RULE = { id: 'default', limit: 100, windowMillis: 600_000, clock: 'cluster' } as const;

let cluster: InProcessCluster;
beforeAll(async () => {
  cluster = await InProcessCluster.create({
    rules: [RULE],
    nodes: 1,
    partitions: 2,
    resp: true,
    // Each entry makes a snapshot due.
    snapshotEveryBytes: 1_024,
    // A busy machine may take this long for a decision.
    timing: { requestDeadlineMillis: 10_000 },
  });
  await cluster.startAll();
});
afterAll(async () => cluster.stop());

function url(path: string): string {
  return `http://127.0.0.1:${cluster.config.nodes[0]?.http.port ?? 0}${path}`;
}

async function metrics(): Promise<string> {
  return (await fetch(url('/metrics'))).text();
}

/** The value of a series without its labels in full. */
function valueOf(text: string, series: string): number {
  const line = text.split('\n').find((each) => each.startsWith(`${series} `));
  return Number(line?.slice(series.length + 1));
}

describe('the metrics of a node', () => {
  it('cover entries, without naming users', async () => {
    const before = valueOf(await metrics(), 'quorate_commit_seconds_count');
    const headers = { 'content-type': 'application/json' };
    const body = JSON.stringify({ userId: 'ada@example.com' });
    const answer = await fetch(url('/v1/allow'), { method: 'POST', headers, body });
    expect(answer.status).toBe(200);
    const text = await metrics();
    for (const what of ['commit', 'queue', 'apply'])
      expect([what, valueOf(text, `quorate_${what}_seconds_count`)]).toEqual([what, before + 1]);
    expect(valueOf(text, 'quorate_commit_seconds_sum')).toBeGreaterThan(0);
    expect(text).not.toContain('ada@');
  });

  it('cover its disk, its groups and its connections', async () => {
    const positive = [
      'quorate_disk_bytes',
      'quorate_disk_free_bytes',
      'quorate_disk_free_floor_bytes',
      'quorate_connections{listener="http"}',
      'quorate_leader_changes_total{what="elected"}',
      'quorate_disk_write_seconds_count',
      'quorate_ready',
    ];
    const zero = [
      'quorate_draining',
      'quorate_apply_lag_entries',
      'quorate_replication_lag_entries',
      'quorate_groups_without_leader',
      'quorate_peer_connections',
      'quorate_connections{listener="resp"}',
    ];
    const others = async (): Promise<string[]> => {
      const reported = await metrics();
      return [
        ...positive.filter((series) => !(valueOf(reported, series) > 0)),
        ...zero.filter((series) => valueOf(reported, series) !== 0),
      ];
    };
    // Group 0 may be the last to elect its leader, and an entry may be on its way to the disk.
    await expect.poll(others, { timeout: WAIT_MILLIS_MAX }).toEqual([]);
    const text = await metrics();
    expect(text).toMatch(/^quorate_build_info\{version="[^"]+",node_version="v\d+/m);
    expect(text).toContain('nodejs_eventloop_lag_p99_seconds ');
  });

  it('cover number, size and duration of snapshots', async () => {
    const text = await eventually('a snapshot is kept', async () => {
      await cluster.allow(1, { userId: `user-${Math.random()}` });
      const now = await metrics();
      return valueOf(now, 'quorate_snapshot_seconds_count{from="self"}') > 0 ? now : undefined;
    });
    expect(valueOf(text, 'quorate_snapshot_bytes_total{from="self"}')).toBeGreaterThan(0);
  });
});
