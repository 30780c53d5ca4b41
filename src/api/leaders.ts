/**
 * Who leads which partition, and where: what a client needs that asks leaders directly, as `GET /v1/leaders` says it, and the check
 * of that by whoever reads it. A hint: every node answers every request, so who goes by an older one loses a hop and nothing else.
 */
import type { ClusterReport } from './cluster-report.ts';

/** Of a node that is up and takes requests. */
export interface LeadersNode {
  readonly id: number;
  /** `host:port` of its HTTP door. */
  readonly http: string;
}

export interface LeadersReport {
  readonly nodes: readonly LeadersNode[];
  /** By partition, from 0. `leader` is the id of a node, 0 while none is known; within a `term` it never changes. */
  readonly partitions: readonly { readonly leader: number; readonly term: number }[];
}

export function leadersOf({ nodes, partitions }: ClusterReport): LeadersReport {
  return {
    nodes: nodes.flatMap(({ id, http, up, draining }) =>
      http === null || !up || draining === true ? [] : [{ id, http }],
    ),
    partitions: partitions.map(({ leader, term }) => ({ leader, term })),
  };
}

/** True if `value` is such a report; it may have fields that are not known here. */
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
