/** Tests the faults that follow from the differences of two reports. */
import { beforeEach, describe, expect, it } from 'vitest';
import type { ClusterReport, ReportedNode } from '../../src/api/cluster-report.ts';
import { FAULT_PARTITIONS_MAX, FAULTS_MAX } from '../../src/api/monitoring.ts';
import { FaultLog } from '../../src/node/fault-log.ts';

function nodeOf(id: number, changes: Partial<ReportedNode> = {}): ReportedNode {
  return { id, http: null, pid: null, up: true, clock: 'fit', speaks: null, release: null, ...changes };
}

/** @param leaders by partition */
function reportOf(nodes: readonly ReportedNode[], leaders: readonly number[]): ClusterReport {
  return {
    self: { id: 1, membership: 'member', refusedBy: [] },
    nodes,
    version: 1,
    settledVersion: 1,
    rules: null,
    partitions: leaders.map((leader, id) => ({ id, leader, term: 1, commit: 1, placed: true, replicas: [] })),
  };
}

let now = 0;
let log: FaultLog;

beforeEach(() => {
  now = 1_000;
  log = new FaultLog(() => now);
});

describe('the log of faults', () => {
  it('takes the first report as its baseline', () => {
    log.check(reportOf([nodeOf(1), nodeOf(2, { up: false })], [0, 1]));
    expect(log.faults).toEqual([]);
  });

  it('reports a lost leader and its successor, latest first', () => {
    log.check(reportOf([nodeOf(1), nodeOf(2)], [2, 1, 2]));
    now = 2_000;
    log.check(reportOf([nodeOf(1), nodeOf(2, { up: false })], [0, 1, 0]));
    now = 3_000;
    log.check(reportOf([nodeOf(1), nodeOf(2, { up: false })], [1, 1, 1]));
    expect(log.faults).toEqual([
      { id: 3, atMillis: 3_000, kind: 'leaderElected', node: 1, count: 2, partitions: [0, 2] },
      { id: 2, atMillis: 2_000, kind: 'leaderLost', node: 2, count: 2, partitions: [0, 2] },
      { id: 1, atMillis: 2_000, kind: 'nodeSilent', node: 2 },
    ]);
  });

  it('reports a lost leader also if another was elected meanwhile, and a moved leadership', () => {
    log.check(reportOf([nodeOf(1), nodeOf(2), nodeOf(3)], [2, 3]));
    log.check(reportOf([nodeOf(1), nodeOf(2, { up: false }), nodeOf(3)], [1, 1]));
    expect(log.faults.map(({ kind, node, partitions }) => [kind, node, partitions])).toEqual([
      ['leaderMoved', 1, [1]],
      ['leaderElected', 1, [0]],
      ['leaderLost', 2, [0]],
      ['nodeSilent', 2, undefined],
    ]);
  });

  it('reports wrong clocks and drained nodes, and their ends; a joining node is no fault', () => {
    log.check(reportOf([nodeOf(1)], []));
    log.check(reportOf([nodeOf(1, { clock: 'fast', draining: true }), nodeOf(2)], []));
    log.check(reportOf([nodeOf(1), nodeOf(2)], []));
    expect(log.faults.map(({ kind }) => kind)).toEqual([
      'drainEnded',
      'clockFit',
      'drainBegun',
      'clockUnfit',
    ]);
  });

  it('has a bounded number of faults, and of partitions in one', () => {
    const many = Array.from({ length: 2 * FAULT_PARTITIONS_MAX }, () => 1);
    log.check(reportOf([nodeOf(1)], many));
    for (let i = 1; i <= FAULTS_MAX + 5; i += 1)
      log.check(
        reportOf(
          [nodeOf(1)],
          many.map(() => 1 + (i % 2)),
        ),
      );
    expect(log.faults.length).toBe(FAULTS_MAX);
    expect(log.faults[0]).toMatchObject({ id: FAULTS_MAX + 5, count: many.length });
    expect(log.faults[0]?.partitions?.length).toBe(FAULT_PARTITIONS_MAX);
  });
});
