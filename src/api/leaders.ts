/**
 * The leaders of all partitions and their addresses: the answer of `GET /v1/leaders`, and the check of it for clients
 * that send requests directly to leaders. It is a hint: every node answers every request, so a client with an older
 * answer costs only one extra hop.
 */
import type { ClusterReport } from './cluster-report.ts';

/** A node that is up and takes requests. */
export interface LeadersNode {
  readonly id: number;
  /** `host:port` of its HTTP listener. */
  readonly http: string;
}

/** Which node leads each partition. */
export interface LeadersReport {
  readonly nodes: readonly LeadersNode[];
  /**
   * Indexed by partition, from 0. `leader` is the id of a node, or 0 if none is known. Within one `term` the leader
   * never changes.
   */
  readonly partitions: readonly { readonly leader: number; readonly term: number }[];
}

/** Extracts the leaders from a cluster report. */
export function leadersOf({ nodes, partitions }: ClusterReport): LeadersReport {
  return {
    nodes: nodes.flatMap(({ id, http, up, draining }) =>
      http === null || !up || draining === true ? [] : [{ id, http }],
    ),
    partitions: partitions.map(({ leader, term }) => ({ leader, term })),
  };
}

/** True if `value` is a `LeadersReport`. Unknown fields are allowed. */
export function isLeadersReport(value: unknown): value is LeadersReport {
  if (!isObject(value)) return false;
  const { nodes, partitions } = value as { nodes?: unknown; partitions?: unknown };
  return (
    Array.isArray(nodes) &&
    nodes.every((each) => isObject(each) && isCount(each['id']) && typeof each['http'] === 'string') &&
    Array.isArray(partitions) &&
    partitions.length > 0 &&
    partitions.every((each) => isObject(each) && isCount(each['leader']) && isCount(each['term']))
  );
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isCount(value: unknown): boolean {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}
