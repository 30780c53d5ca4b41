/**
 * What one node knows about the whole cluster, for `GET /v1/cluster`: every node tells its peers twice a second
 * how its groups are doing. Only for people and tests to look at; nothing is decided by it.
 */
import type { RaftStatus } from '../raft/core.ts';
import type { NodeId } from '../raft/types.ts';
import type { NodeAddress } from './config.ts';
import type { Placement } from './partition/placement.ts';
import { array, Fields, pack, unpack } from './transport/peer-codec.ts';

export interface PartitionReport {
  readonly partition: number;
  readonly isLeader: boolean;
  readonly term: number;
  readonly commit: number;
  readonly applied: number;
  readonly lastIndex: number;
}

export interface NodeReport {
  readonly node: NodeId;
  readonly pid: number;
  readonly partitions: readonly PartitionReport[];
}

/** A node that was silent for this long is shown as down. Reports come every 500 ms. */
const SILENT_MILLIS_MAX = 2_000;

export function reportOf(partition: number, status: RaftStatus): PartitionReport {
  const { role, term, commit, applied, lastIndex } = status;
  return { partition, isLeader: role === 'leader', term, commit, applied, lastIndex };
}

export function encodeReport(report: NodeReport): Buffer {
  const rows = report.partitions.map((p) => [
    p.partition,
    p.isLeader,
    p.term,
    p.commit,
    p.applied,
    p.lastIndex,
  ]);
  return pack([report.pid, rows]);
}

/** @throws FrameError if the payload is malformed */
export function decodeReport(node: NodeId, payload: Uint8Array): NodeReport {
  const fields = new Fields(unpack(payload));
  const pid = fields.integer('pid');
  const partitions = array(fields.next('partitions'), 'partitions').map((row) => {
    const p = new Fields(row);
    return {
      partition: p.integer('partition'),
      isLeader: p.boolean('isLeader'),
      term: p.integer('term'),
      commit: p.integer('commit'),
      applied: p.integer('applied'),
      lastIndex: p.integer('lastIndex'),
    };
  });
  return { node, pid, partitions };
}

export class ClusterView {
  readonly #nodes: readonly NodeAddress[];
  readonly #placement: Placement;
  readonly #monotonicMillis: () => number;
  readonly #reports = new Map<NodeId, { readonly report: NodeReport; readonly atMillis: number }>();

  constructor(nodes: readonly NodeAddress[], placement: Placement, monotonicMillis: () => number) {
    this.#nodes = nodes;
    this.#placement = placement;
    this.#monotonicMillis = monotonicMillis;
  }

  update(report: NodeReport): void {
    this.#reports.set(report.node, { report, atMillis: this.#monotonicMillis() });
  }

  /** The node's connection broke: show it as down until it reports again. */
  lost(node: NodeId): void {
    const seen = this.#reports.get(node);
    if (seen !== undefined) this.#reports.set(node, { ...seen, atMillis: Number.NEGATIVE_INFINITY });
  }

  /** `leader` is 0 while nobody claims it; `match` and `applied` are as last reported by each replica. */
  toJSON(): unknown {
    const now = this.#monotonicMillis();
    const isUp = (node: NodeId): boolean => {
      const seen = this.#reports.get(node);
      return seen !== undefined && now - seen.atMillis <= SILENT_MILLIS_MAX;
    };
    return {
      nodes: this.#nodes.map(({ id, http }) => ({
        id,
        http: `${http.host}:${http.port}`,
        pid: this.#reports.get(id)?.report.pid ?? null,
        up: isUp(id),
      })),
      partitions: Array.from({ length: this.#placement.partitionCount }, (_, partition) => {
        const replicas = this.#placement.replicasOf(partition).map((node) => ({
          node,
          seen: this.#reports.get(node)?.report.partitions.find((p) => p.partition === partition),
        }));
        const claims = replicas.filter(({ node, seen }) => seen?.isLeader === true && isUp(node));
        const leader = claims.sort((a, b) => (b.seen?.term ?? 0) - (a.seen?.term ?? 0))[0];
        return {
          id: partition,
          leader: leader?.node ?? 0,
          term: Math.max(0, ...replicas.map(({ seen }) => seen?.term ?? 0)),
          commit: Math.max(0, ...replicas.map(({ seen }) => seen?.commit ?? 0)),
          replicas: replicas.map(({ node, seen }) => ({
            node,
            match: seen?.lastIndex ?? 0,
            applied: seen?.applied ?? 0,
          })),
        };
      }),
    };
  }
}
