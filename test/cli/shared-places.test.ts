/** Tests which partitions are reported to have copies that fail together. */
import { describe, expect, it } from 'vitest';
import type { ReportedNode, ReportedPartition } from '../../src/api/cluster-report.ts';
import type { NodeLabels } from '../../src/api/node-address.ts';
import { sharedPlaces } from '../../src/cli/cluster-health.ts';

function node(id: number, labels: NodeLabels = {}): ReportedNode {
  return { id, http: null, pid: null, up: true, clock: null, speaks: null, release: null, ...labels };
}

function partition(id: number, nodes: readonly number[]): ReportedPartition {
  const replicas = nodes.map((each) => ({ node: each, match: 0, applied: 0 }));
  return { id, leader: 0, term: 0, commit: 0, placed: true, replicas };
}

describe('copies with the same host or zone', () => {
  it('are not found if there are no labels, or every copy is elsewhere', () => {
    const partitions = [partition(0, [1, 2, 3])];
    expect(sharedPlaces({ nodes: [1, 2, 3].map((id) => node(id)), partitions })).toEqual([]);
    const apart = [1, 2, 3].map((id) => node(id, { zone: `z${id}`, host: `h${id}` }));
    expect(sharedPlaces({ nodes: apart, partitions })).toEqual([]);
  });

  it('are reported by partition, for hosts and for zones', () => {
    const nodes = [
      node(1, { host: 'm', zone: 'a' }),
      node(2, { host: 'm' }),
      node(3, { zone: 'b' }),
      node(4, { zone: 'b' }),
    ];
    const partitions = [partition(0, [1, 2, 3]), partition(1, [1, 3, 4]), partition(2, [1, 3])];
    const [hosts, zones, ...more] = sharedPlaces({ nodes, partitions });
    expect(hosts).toMatch(/^partition 0: copies share a host/);
    expect(zones).toMatch(/^partition 0, 1: copies share a zone/);
    expect(more).toEqual([]);
  });

  it('are found by the first zone if a host has two, and the second zone is reported', () => {
    const nodes = [
      node(1, { host: 'm', zone: 'a' }),
      node(2, { host: 'm', zone: 'b' }),
      node(3, { zone: 'b' }),
    ];
    const [note, ...more] = sharedPlaces({ nodes, partitions: [partition(0, [2, 3])] });
    expect(note).toMatch(/^node 2 is labelled zone b, and its host m is in zone a/);
    expect(more).toEqual([]);
  });
});
