/**
 * Finds partitions whose copies would fail together because they are on one host or in one zone, and describes them in
 * sentences. Pure functions.
 */
import type { ClusterReport, ReportedNode } from '../api/cluster-report.ts';
import { listed } from './listed.ts';

/** The sentences for a cluster. A node without a label counts as a place of its own. */
export function sharedPlaces({ nodes, partitions }: Pick<ClusterReport, 'nodes' | 'partitions'>): string[] {
  const zones = new Map(nodes.map((node) => [node.id, zoneOf(node, nodes)]));
  const hosts = new Map(nodes.map(({ id, host }) => [id, host]));
  const sharing = (places: ReadonlyMap<number, string | undefined>): number[] =>
    partitions
      .filter(({ replicas }) => {
        const said = replicas.flatMap(({ node }) => places.get(node) ?? []);
        return new Set(said).size < said.length;
      })
      .map(({ id }) => id);
  const [onHost, inZone] = [sharing(hosts), sharing(zones)];
  return [
    ...(onHost.length > 0
      ? [`partition ${listed(onHost)}: copies share a host, and fail with it; add nodes on other hosts`]
      : []),
    ...(inZone.length > 0
      ? [
          `partition ${listed(inZone)}: copies share a zone; once all have moved, no more than its nodes and hosts require`,
        ]
      : []),
    ...contradictions(nodes),
  ];
}

/** The zone of a node. A host is in one zone: that of its node with the lowest id that has a zone. */
function zoneOf({ host, zone }: ReportedNode, nodes: readonly ReportedNode[]): string | undefined {
  if (host === undefined) return zone;
  const named = nodes.filter((node) => node.host === host && node.zone !== undefined);
  return named.toSorted((a, b) => a.id - b.id)[0]?.zone;
}

function contradictions(nodes: readonly ReportedNode[]): string[] {
  return nodes.flatMap((node) => {
    const counts = zoneOf(node, nodes);
    if (node.zone === undefined || node.zone === counts) return [];
    return [
      `node ${node.id} is labelled zone ${node.zone}, and its host ${node.host} is in zone ${counts} by another node; that counts`,
    ];
  });
}
