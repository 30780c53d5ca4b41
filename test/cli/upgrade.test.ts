/** Tests what `quorate upgrade` prints during an upgrade, when there is nothing to finish, and when no node answers. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ClusterReport } from '../../src/api/cluster-report.ts';
import { finishUpgrade, showUpgrade } from '../../src/cli/upgrade-command.ts';
import { upgradeProgress } from '../../src/cli/cluster-health.ts';
import { eventually, freePorts, WAIT_MILLIS_MAX } from '../cluster/harness.ts';
import { InProcessCluster } from '../cluster/in-process.ts';
import { REPORT } from '../http/fixtures.ts';
import { inTime } from './command.ts';

const RULE = { id: 'default', limit: 3, windowMillis: 600_000, clock: 'cluster' } as const;

/**
 * Makes a report. `speaks` holds the version of each node from 1 on; null if unknown, undefined if the node is down.
 */
function reportOf(clusterVersion: number, ...speaks: readonly (number | null | undefined)[]): ClusterReport {
  const nodes = speaks.map((each, i) => ({
    id: i + 1,
    http: null,
    pid: null,
    up: each !== undefined,
    clock: null,
    speaks: each ?? null,
    release: null,
  }));
  return { ...REPORT, clusterVersion, nodes };
}

describe('the progress of an upgrade', () => {
  it.each<[string, ClusterReport, object]>([
    ['finished', reportOf(2, 2, 2, 2), { isFinished: true, target: 2 }],
    ['finished, and a node is down', reportOf(2, 2, 2, undefined), { isFinished: true }],
    ['not begun', reportOf(1, 1, 1, 1), { isFinished: true, target: 1 }],
    [
      'under way',
      reportOf(1, 2, 1, undefined, null),
      {
        isFinished: false,
        target: 2,
        text: expect.stringContaining(
          '(node 2 speaks 1, node 3 is down, node 4 speaks an unknown one)',
        ) as string,
      },
    ],
    [
      'to be finished',
      reportOf(1, 2, 2, 2),
      { isFinished: false, behind: [], text: expect.stringContaining('`quorate upgrade finish`') as string },
    ],
  ])('%s', (_, report, progress) => {
    expect(upgradeProgress(report)).toMatchObject(progress);
  });

  it('is unknown while a node knows no cluster version', () => {
    expect(upgradeProgress(REPORT)).toBeUndefined();
  });
});

describe('a new cluster', () => {
  let cluster: InProcessCluster;
  let node: string;
  const lines: string[] = [];
  const print = (line: string): void => void lines.push(line);
  beforeAll(async () => {
    cluster = await InProcessCluster.create({ rules: [RULE], partitions: 2 });
    await cluster.startAll();
    node = `http://127.0.0.1:${cluster.config.nodes[0]?.http.port ?? 0}`;
    await eventually('the reports of all nodes have come', async () => {
      lines.length = 0;
      await showUpgrade({ node, json: true, print }).catch(() => undefined);
      return (lines[0]?.match(/"up":true,"speaks":1/g) ?? []).length === 3 ? true : undefined;
    });
  });
  afterAll(async () => cluster.stop());

  it('has the version of its founders', async () => {
    lines.length = 0;
    expect(await inTime(() => showUpgrade({ node, json: true, print }))).toBe('finished');
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({ version: 1, target: 1, finished: true });
    lines.length = 0;
    await inTime(() => showUpgrade({ node, print }));
    expect(lines).toHaveLength(5);
    expect(lines.at(-1)).toBe('the cluster is at version 1, and no node speaks a higher one');
  });

  it('has no upgrade to finish, also when the command is repeated', async () => {
    const asked = { node, timeoutMillis: WAIT_MILLIS_MAX, print };
    for (let time = 0; time < 2; time += 1) {
      lines.length = 0;
      await inTime(() => finishUpgrade(asked));
      // More lines come before it if group 0 has no leader for a moment.
      expect(lines.at(-1)).toBe('the cluster is at version 1 already: there is nothing to finish');
    }
    lines.length = 0;
    await inTime(() => finishUpgrade({ ...asked, json: true }));
    expect(lines).toEqual(['{"version":1,"before":1}']);
  });

  it('cannot be asked if no node answers', async () => {
    const [port = 0] = await freePorts(1);
    const nowhere = { node: `http://127.0.0.1:${port}`, print };
    await expect(inTime(() => showUpgrade(nowhere))).rejects.toMatchObject({ outcome: 'unreachable' });
    await expect(inTime(() => finishUpgrade({ ...nowhere, timeoutMillis: 0 }))).rejects.toMatchObject({
      outcome: 'unreachable',
      message: expect.stringMatching(
        /does not report the state of the cluster \(ECONNREFUSED\): give the address/,
      ) as string,
    });
  });
});
