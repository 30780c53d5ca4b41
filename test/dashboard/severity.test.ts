/**
 * Tests the verdict on the cluster: a dead node, keys without decisions and an outage get different severities and
 * advice.
 */
import { describe, expect, it } from 'vitest';
import type { ReportedNode, ReportedPartition } from '../../src/api/cluster-report.ts';
import type { LiveCluster } from '../../src/api/monitoring.ts';
import { nodeStateOf } from '../../src/dashboard/cluster-state.ts';
import { type Judged, type Verdict, verdictOf } from '../../src/dashboard/severity.ts';
import { clockTime } from '../../src/dashboard/words.ts';

const HEARD_MILLIS = 1_700_000_000_000;
const AS_OF = clockTime(HEARD_MILLIS);

function nodeOf(id: number, changes: Partial<ReportedNode> = {}): ReportedNode {
  const http = `127.0.0.1:${8_100 + id}`;
  return { id, http, pid: 1, up: true, clock: 'fit', speaks: 1, release: '1', ...changes };
}

function partitionOf(id: number, changes: Partial<ReportedPartition> = {}): ReportedPartition {
  const replicas = [1, 2, 3].map((node) => ({ node, match: 5, applied: 5 }));
  return { id, leader: 1, term: 1, commit: 5, placed: true, replicas, ...changes };
}

const WELL: LiveCluster = {
  self: { id: 1, membership: 'member', refusedBy: [] },
  nodes: [1, 2, 3].map((id) => nodeOf(id)),
  version: 1,
  settledVersion: 1,
  rulesVersion: 1,
  partitions: [0, 1, 2, 3].map((id) => partitionOf(id)),
};

function withDown(...down: readonly number[]): LiveCluster {
  return { ...WELL, nodes: WELL.nodes.map((node) => ({ ...node, up: !down.includes(node.id) })) };
}

function withPartitions(changes: Partial<ReportedPartition>, ...ids: readonly number[]): LiveCluster {
  const partitions = WELL.partitions.map((each) => (ids.includes(each.id) ? { ...each, ...changes } : each));
  return { ...WELL, partitions };
}

function judged(cluster: LiveCluster | undefined, changes: Partial<Judged> = {}): Judged {
  return { status: 'live', reason: '', isAnswered: false, heardMillis: HEARD_MILLIS, cluster, ...changes };
}

function live(cluster: LiveCluster, deniedFraction?: number): Verdict | undefined {
  return verdictOf(judged(cluster), deniedFraction);
}

function lost(cluster: LiveCluster | undefined, changes: Partial<Judged> = {}): Verdict | undefined {
  return verdictOf(judged(cluster, { status: 'lost', reason: 'this node does not answer', ...changes }), 1);
}

describe('a cluster that serves', () => {
  it('is healthy only if every node answers, and every partition has a leader and is in its place', () => {
    expect(live(WELL, 0.5)).toMatchObject({
      severity: 'well',
      what: 'All 3 nodes are up, and every partition has a leader.',
      action: '',
    });
    expect(live(withPartitions({ placed: false }, 2))).toMatchObject({
      severity: 'attention',
      what: '1 partition moves to other nodes, and every partition has a leader.',
    });
    const fast = { ...WELL, nodes: [nodeOf(1), nodeOf(2, { clock: 'fast' }), nodeOf(3)] };
    expect(live(fast)).toMatchObject({ severity: 'attention', commands: ['npx quorate doctor'] });
  });

  it('is not healthy while it denies most requests', () => {
    expect(live(WELL, 0.51)).toMatchObject({
      severity: 'attention',
      what: 'The cluster is up, and denies most: 51 % of its decisions.',
    });
  });

  it('with a node down says that it serves, and how to start the node', () => {
    expect(live(withDown(3), 1)).toEqual({
      severity: 'nodeDown',
      what: 'Node 3 is down, and the cluster still serves: every partition has a leader.',
      action: 'Start it, on its machine, before another is lost:',
      commands: ['npx quorate node 3'],
      elsewhere: [],
    });
    expect(live(withDown(2, 3))?.what).toContain('Nodes 2 and 3 are down');
  });
});

describe('a cluster that does not serve every key', () => {
  it('says which partitions have no leader, for how many keys that is, and which nodes to start', () => {
    const { partitions } = withPartitions({ leader: 0 }, 1, 3);
    expect(live({ ...withDown(2, 3), partitions })).toMatchObject({
      severity: 'noLeader',
      what: '2 of 4 partitions (1 and 3) have no leader: requests for about 50 % of the keys are answered “unavailable”.',
      commands: ['npx quorate node 2', 'npx quorate node 3'],
    });
    expect(live(withPartitions({ leader: 0 }, 1))).toMatchObject({
      severity: 'noLeader',
      commands: ['npx quorate doctor'],
    });
  });

  it('shows that a restore denies every request, and for how long', () => {
    // The restore explains the denials, and is worse than a dead node.
    const { partitions } = withPartitions({ restoredMillis: 59_001 }, 0);
    expect(live({ ...withDown(3), partitions }, 1)).toMatchObject({
      severity: 'noLeader',
      what: '1 restored partition denies every request, for 60 s more at most.',
    });
  });

  it('is a total outage when no partition has a leader', () => {
    const { partitions } = withPartitions({ leader: 0 }, 0, 1, 2, 3);
    expect(live({ ...withDown(2, 3), partitions })).toMatchObject({
      severity: 'outage',
      what: 'Total outage: no partition has a leader, and every request is answered “unavailable”.',
    });
  });
});

describe('a page whose node does not answer', () => {
  it('is marked as old, and names only the nodes that were up', () => {
    const verdict = lost(withDown(3));
    expect(verdict).toMatchObject({
      severity: 'outage',
      what: `Not live: node 1 does not answer since ${AS_OF}, and this page is old.`,
    });
    expect(verdict?.elsewhere.map(({ id }) => id)).toEqual([2]);
    expect(verdict?.action).toContain('If none answers, the whole cluster is down');
  });

  it('says that no node answers if no other was up either, and has no links', () => {
    expect(lost(withDown(2, 3))).toMatchObject({
      severity: 'outage',
      what: `Not live: total outage. No node answers since ${AS_OF}, and this page is old.`,
      action: 'Start nodes 1, 2 and 3, each on its machine:',
      commands: [1, 2, 3].map((id) => `npx quorate node ${id}`),
      elsewhere: [],
    });
    expect(lost(undefined)?.severity).toBe('outage');
    expect(lost(undefined, { isAnswered: true })?.severity).toBe('attention');
  });

  it('shows no outage if the node answers with a refusal', () => {
    expect(lost(WELL, { isAnswered: true, reason: 'it is drained' })).toMatchObject({
      severity: 'attention',
      what: `Not live: it is drained. This page is as of ${AS_OF}.`,
    });
  });

  it('has no verdict before the first report', () => {
    expect(verdictOf(judged(undefined, { status: 'connecting' }), undefined)).toBeUndefined();
  });
});

describe('a node on the page', () => {
  const LIVE = { isSelf: false, oldMillis: undefined, heardMillis: HEARD_MILLIS };
  const OLD = { ...LIVE, oldMillis: HEARD_MILLIS };

  it('is up only while it answers, and otherwise shows the time of its last answer', () => {
    expect(nodeStateOf(nodeOf(2), LIVE)).toEqual({ state: 'up', tone: 'good', asOfMillis: undefined });
    expect(nodeStateOf(nodeOf(2, { up: false, silentMillis: 4_000 }), LIVE)).toEqual({
      state: 'silent',
      tone: 'bad',
      asOfMillis: HEARD_MILLIS - 4_000,
    });
    expect(nodeStateOf(nodeOf(2), OLD)).toMatchObject({ state: 'was up', tone: 'usual' });
    expect(nodeStateOf(nodeOf(1), { ...OLD, isSelf: true })).toMatchObject({ state: 'silent', tone: 'bad' });
  });

  it('shows that it is drained, or that its clock is unfit', () => {
    expect(nodeStateOf(nodeOf(2, { draining: true }), LIVE).state).toBe('drained');
    expect(nodeStateOf(nodeOf(2, { clock: 'slow' }), LIVE).state).toBe('clock too slow');
  });
});
