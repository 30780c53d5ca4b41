/** `GET /v1/leaders`: the leader of each partition, and the check of the report. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ClusterReport } from '../../src/api/cluster-report.ts';
import { isLeadersReport, leadersOf } from '../../src/api/leaders.ts';
import { Listener, REPORT } from './fixtures.ts';

let listener = new Listener();

beforeEach(() => {
  listener = new Listener();
});
afterEach(async () => listener.app.close());

describe('GET /v1/leaders', () => {
  it('returns the leader of each partition and the listeners of nodes that are up, and nothing else', async () => {
    const { statusCode, body } = await listener.app.inject({ url: '/v1/leaders' });
    expect(statusCode).toBe(200);
    expect(JSON.parse(body)).toEqual({
      nodes: [{ id: 1, http: '127.0.0.1:8101' }],
      partitions: [{ leader: 1, term: 3 }],
    });
  });

  it('is 503 while the node is starting', async () => {
    listener.readiness = { status: 'starting', loaded: 0, of: 3 };
    expect((await listener.app.inject({ url: '/v1/leaders' })).statusCode).toBe(503);
  });

  it('omits a drained node, which accepts no requests', () => {
    const [first] = REPORT.nodes;
    const report = { ...REPORT, nodes: [{ ...first, draining: true }] } as ClusterReport;
    expect(leadersOf(report).nodes).toEqual([]);
  });
});

describe('the check of a report of leaders', () => {
  it('accepts the answer of a node, and fields of later versions', () => {
    expect(isLeadersReport(leadersOf(REPORT))).toBe(true);
    expect(isLeadersReport({ ...leadersOf(REPORT), later: 1 })).toBe(true);
  });

  it.each([
    null,
    [],
    {},
    { nodes: [], partitions: [] },
    { nodes: [{ id: 1 }], partitions: [{ leader: 1, term: 1 }] },
    { nodes: [{ id: '1', http: 'a:1' }], partitions: [{ leader: 1, term: 1 }] },
    { nodes: [], partitions: [{ leader: -1, term: 1 }] },
    { nodes: [], partitions: [{ leader: 1, term: 0.5 }] },
    { nodes: {}, partitions: [{ leader: 1, term: 1 }] },
  ])('refuses %j', (value) => {
    expect(isLeadersReport(value)).toBe(false);
  });
});
