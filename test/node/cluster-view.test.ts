/** Tests the view of other nodes: their last reports, and how long they have been silent. */
import { beforeEach, describe, expect, it } from 'vitest';
import { ClusterView, type Known } from '../../src/node/cluster-view.ts';
import type { NodeReport } from '../../src/wire/node-report.ts';

const NODES = [1, 2].map((id) => ({
  id,
  http: { host: '127.0.0.1', port: 8_100 + id },
  peer: { host: '127.0.0.1', port: 9_100 + id },
}));
const KNOWN: Known = {
  nodes: NODES,
  version: 1,
  settledVersion: 1,
  rules: undefined,
  replicasOf: () => [],
  self: { id: 1, status: { state: 'member' }, refusals: new Map() },
};
const FIGURES = { p99Millis: 4, diskP99Millis: 2, clockPpm: null, stateBytes: 1, stateBytesMax: 2 };

function reportOf(node: number, times?: readonly number[]): NodeReport {
  const report: NodeReport = { node, pid: 1, clock: 'fit', partitions: [], speaks: 1 };
  return times === undefined ? report : { ...report, pace: { figures: FIGURES, times } };
}

let now = 0;
let view: ClusterView;

beforeEach(() => {
  now = 0;
  view = new ClusterView(
    () => KNOWN,
    1,
    () => now,
  );
});

describe('the view of a cluster', () => {
  it('keeps the figures of a silent node, and reports for how long it has been silent', () => {
    view.update(reportOf(2, [0, 3]));
    now = 2_000;
    const [never, heard] = view.report().nodes;
    expect([never?.up, never?.silentMillis, never?.figures]).toEqual([false, undefined, undefined]);
    expect([heard?.up, heard?.silentMillis, heard?.figures]).toEqual([true, undefined, FIGURES]);
    now = 2_001;
    expect(view.report().nodes[1]).toMatchObject({ up: false, silentMillis: 2_001, figures: FIGURES });
  });

  it('counts a node whose connection broke as silent since its last report', () => {
    view.update(reportOf(2));
    now = 300;
    view.lost(2);
    expect(view.report().nodes[1]).toMatchObject({ up: false, silentMillis: 300 });
    view.update(reportOf(2));
    expect(view.report().nodes[1]?.up).toBe(true);
  });

  it('excludes silent nodes, and those without times, from the latest times', () => {
    view.update(reportOf(1));
    view.update(reportOf(2, [0, 3]));
    expect([...view.latestTimes()]).toEqual([[2, [0, 3]]]);
    view.lost(2);
    expect(view.latestTimes().size).toBe(0);
  });
});
