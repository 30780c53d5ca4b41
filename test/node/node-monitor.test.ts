/** Tests the monitoring API of a node, with a scripted core. */
import { describe, expect, it } from 'vitest';
import type { ClusterReport } from '../../src/api/cluster-report.ts';
import type { UsageQuery, UsageResult } from '../../src/api/usage.ts';
import type { ClusterView } from '../../src/node/cluster-view.ts';
import { ListenerUsage } from '../../src/node/listener-usage.ts';
import { NodeMonitor } from '../../src/node/node-monitor.ts';
import type { NodeReadiness } from '../../src/node/readiness.ts';

const REPORT: ClusterReport = {
  self: { id: 1, membership: 'member', refusedBy: [] },
  nodes: [],
  version: 1,
  settledVersion: 1,
  rules: null,
  partitions: [{ id: 0, leader: 1, term: 1, commit: 1, placed: true, replicas: [] }],
};

class Played {
  nowMillis = 0;
  report = REPORT;
  status = 'ready';
  latestTimes: ReadonlyMap<number, readonly number[]> = new Map();
  readonly asked: { readonly query: UsageQuery; readonly done: (result: UsageResult) => void }[] = [];
  readonly monitor: NodeMonitor;

  constructor() {
    const usage = {
      ask: (query: UsageQuery, done: (result: UsageResult) => void) => this.asked.push({ query, done }),
    };
    const core = {
      router: { openCount: 3 },
      waitingCount: 2,
      capacity: { stateBytes: 10, stateBytesMax: 20 },
      usage,
    };
    const clocks = { monotonicMillis: () => this.nowMillis, wallMillis: () => this.nowMillis };
    const current = (): { status: string } => ({ status: this.status });
    const readiness = {
      get current() {
        return current();
      },
      core,
    };
    const view = { report: () => this.report, latestTimes: () => this.latestTimes };
    this.monitor = new NodeMonitor({
      readiness: readiness as unknown as NodeReadiness,
      view: view as unknown as ClusterView,
      usage: new ListenerUsage(clocks),
      clocks,
    });
  }

  /** Makes all nodes count this many grants. */
  answer(allowed: number): void {
    const history = {
      fromMillis: 0,
      allowed: [0, allowed],
      denied: [0, 0],
      unavailable: [0, 0],
      degraded: [0, 0],
    };
    const report = { minutes: 2, nodes: [1, 2], silent: [3], rules: [], history };
    this.asked.at(-1)?.done({ ok: true, report });
  }
}

describe('the figures of a node', () => {
  it('contain the rates of the cluster since the previous question', () => {
    const played = new Played();
    expect(played.monitor.figures()).toMatchObject({
      rates: null,
      times: null,
      openRequests: 3,
      waitingProposals: 2,
    });
    played.answer(100);
    played.nowMillis = 1_000;
    expect(played.monitor.figures().rates).toBeNull();
    played.answer(130);
    played.nowMillis = 2_000;
    expect(played.monitor.figures().rates).toEqual({
      perSecond: { allowed: 30, denied: 0, unavailable: 0, degraded: 0 },
      nodes: [1, 2],
      silent: [3],
    });
  });

  it('contain the answer times of all nodes together', () => {
    const played = new Played();
    expect(played.monitor.figures().clusterTimes).toBeNull();
    // Node 1 gave 990 answers in 0.125 ms, node 2 gave 10 in 8 s and 4 in 1 ms.
    played.latestTimes = new Map([
      [2, Array.from({ length: 65 }, (_, step) => ({ 12: 4, 64: 10 })[step] ?? 0)],
      [1, [986]],
    ]);
    expect(played.monitor.figures().clusterTimes).toEqual({
      nodes: [1, 2],
      seconds: 10,
      timed: 1_000,
      p50Millis: 0.125,
      p99Millis: 1,
    });
  });

  it('ask no further question while one is open, and contain no outdated rates', () => {
    const played = new Played();
    for (const [second, allowed] of [100, 130].entries()) {
      played.nowMillis = 1_000 * second;
      played.monitor.figures();
      played.answer(allowed);
    }
    for (const [millis, isReported] of [
      [2_000, true],
      [6_000, true],
      [6_001, false],
    ] as const) {
      played.nowMillis = millis;
      expect(played.monitor.figures().rates !== null).toBe(isReported);
    }
    expect(played.asked.length).toBe(3);
  });
});

describe('the faults of a node', () => {
  it('are recorded from the time the node was first ready', () => {
    const played = new Played();
    played.status = 'waiting for leaders';
    played.monitor.check();
    played.report = { ...REPORT, partitions: [{ ...REPORT.partitions[0]!, leader: 2 }] };
    played.status = 'ready';
    played.monitor.check();
    expect(played.monitor.faults()).toEqual([]);
    played.status = 'waiting for leaders';
    played.report = REPORT;
    played.monitor.check();
    expect(played.monitor.faults()).toMatchObject([{ kind: 'leaderMoved', node: 1, partitions: [0] }]);
  });
});
