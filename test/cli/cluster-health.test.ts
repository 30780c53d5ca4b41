/** Tests what `quorate status` advises about nodes that are down, before and after a recovery. */
import { describe, expect, it } from 'vitest';
import type { ClusterReport, ReportedNode } from '../../src/api/cluster-report.ts';
import { healthOf, problemText } from '../../src/cli/cluster-health.ts';

const RECOVERED_TERM = 1_000_007;

function node(id: number, up: boolean): ReportedNode {
  return { id, http: '127.0.0.1:1', pid: 1, up, clock: null, speaks: 1, release: null };
}

/** The problems of a cluster whose node 3 is down and whose only partition is in this term. */
function problemsIn(term: number): string {
  const nodes = [node(1, true), node(3, false)];
  const replicas = nodes.map(({ id }) => ({ node: id, match: 1, applied: 1 }));
  const report: ClusterReport = {
    self: { id: 1, membership: 'member', refusedBy: [] },
    nodes,
    version: 1,
    settledVersion: 1,
    rules: { version: 1, rules: [] },
    partitions: [{ id: 0, leader: 1, term, commit: 1, placed: true, replicas }],
  };
  const surveyed = nodes.map((each) => ({
    node: each,
    readiness: each.up ? { status: 'ready' } : undefined,
    metrics: undefined,
    ...(!each.up && { problem: 'ECONNREFUSED' }),
  }));
  const { problems } = healthOf({ asked: 'http://127.0.0.1:1', report, nodes: surveyed, failed: [] });
  return problems.map(problemText).join('\n');
}

describe('a node that is down', () => {
  it('is to be started again', () => {
    expect(problemsIn(7)).toMatch(/^node 3 is down \(ECONNREFUSED\); start it again$/m);
  });

  it('is to be replaced if it was lost before the cluster was recovered', () => {
    const said = problemsIn(RECOVERED_TERM);
    expect(said).toMatch(/^node 3 is down .*never start it: `quorate nodes add <new id> --replace 3`/m);
    expect(said).toMatch(/^partition 0: .*replace the nodes that were lost/m);
  });
});
