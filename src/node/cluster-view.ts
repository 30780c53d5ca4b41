/**
 * What one node knows about the whole cluster, for `GET /v1/cluster`. Every node reports the state of its groups to
 * its peers twice a second. For operators and tests; nothing is decided by it.
 */
import type { RaftStatus } from '../../raft/status.ts';
import { membersOf } from '../../raft/membership.ts';
import type { NodeId } from '../../raft/types.ts';
import type { ClusterReport, ReportedNode, ReportedPartition } from '../api/cluster-report.ts';
import { VERSIONS } from '../api/versions.ts';
import { addressText, type HostPort, labelsOf } from '../api/node-address.ts';
import type { RuleTable } from '../limiter/rules.ts';
import type { Member } from '../meta/cluster-state.ts';
import type { MembershipStatus } from '../meta/own-membership.ts';
import { groupOfPartition } from '../partition/placement.ts';
import type { Refusal } from '../wire/hello.ts';
import type { NodeReport, Pace, PartitionReport } from '../wire/node-report.ts';
import type { NodeCore } from './node-core.ts';
import { sayable } from './peer-addresses.ts';

/** A node without a report for this long is shown as down. Reports come every 500 ms. */
const SILENT_MILLIS_MAX = 2_000;
/** Enough characters for people to distinguish two databases. */
const INCARNATION_CHARACTERS = 8;

/** The report of this node about itself and its groups. */
export function reportOf(
  core: NodeCore,
  {
    nodeId,
    pid,
    resp,
    release,
    pace,
  }: {
    readonly nodeId: NodeId;
    readonly pid: number;
    readonly resp?: HostPort | undefined;
    /** Version of the package, if known. */
    readonly release?: string | undefined;
    readonly pace?: Pace;
  },
): NodeReport {
  const { raft, clock, partitions } = core;
  const reports = [...partitions].flatMap(([partition, replica]) => {
    const status = raft.status(groupOfPartition(partition));
    return status === undefined ? [] : [reportOfPartition(partition, status, replica)];
  });
  const { verdict } = clock;
  return {
    node: nodeId,
    pid,
    clock: verdict.fit ? 'fit' : verdict.direction,
    partitions: reports,
    ...(resp !== undefined && sayable(resp) && { resp }),
    ...(core.tokens.version > 0 && { tokensVersion: core.tokens.version }),
    speaks: VERSIONS.max,
    ...(release !== undefined && { release }),
    ...(pace !== undefined && { pace }),
  };
}

function reportOfPartition(
  partition: number,
  { role, term, commit, applied, lastIndex, config }: RaftStatus,
  {
    ruleTable,
    restoredMillis,
  }: { readonly ruleTable: RuleTable | undefined; readonly restoredMillis: number },
): PartitionReport {
  const rulesVersion = ruleTable?.version ?? 0;
  const position = { term, commit, applied, lastIndex };
  const isLeader = role === 'leader';
  const report = { partition, isLeader, ...position, rulesVersion, members: membersOf(config) };
  return restoredMillis === 0 ? report : { ...report, restoredMillis };
}

/** The replicated knowledge about the cluster. */
export interface Known {
  readonly nodes: readonly Member[];
  readonly version: number;
  readonly settledVersion: number;
  /** Absent while nothing is known. */
  readonly clusterVersion?: number;
  /** The node that leaders gather on. Absent: they never gather. */
  readonly gatheredOn?: NodeId | undefined;
  /** The newest rules in a partition of this node. */
  readonly rules: RuleTable | undefined;
  /** The nodes that should hold a partition. */
  readonly replicasOf: (partition: number) => readonly NodeId[];
  /** The node that is asked for the view. */
  readonly self: {
    readonly id: NodeId;
    readonly status: MembershipStatus;
    readonly refusals: ReadonlyMap<NodeId, Refusal>;
  };
}

interface Seen {
  readonly report: NodeReport;
  readonly atMillis: number;
  /** Its connection broke after this report. */
  readonly isLost?: true;
}

/** The view of one node. Keeps the last report of every node. */
export class ClusterView {
  readonly #known: () => Known;
  readonly #partitionCount: number;
  readonly #monotonicMillis: () => number;
  readonly #reports = new Map<NodeId, Seen>();

  constructor(known: () => Known, partitionCount: number, monotonicMillis: () => number) {
    this.#known = known;
    this.#partitionCount = partitionCount;
    this.#monotonicMillis = monotonicMillis;
  }

  /** Takes a report. */
  update(report: NodeReport): void {
    this.#reports.set(report.node, { report, atMillis: this.#monotonicMillis() });
  }

  /** The connection from this node broke: shows it as down until it reports again. */
  lost(node: NodeId): void {
    const seen = this.#reports.get(node);
    if (seen !== undefined) this.#reports.set(node, { ...seen, isLost: true });
  }

  /** The whole view. */
  report(): ClusterReport {
    const isUp = (node: NodeId): boolean => this.#isUp(node);
    const { nodes, version, settledVersion, clusterVersion, gatheredOn, rules, replicasOf, self } =
      this.#known();
    const reports = this.#byPartition();
    const { state: membership, ...why } = self.status;
    return {
      self: {
        id: self.id,
        membership,
        ...why,
        refusedBy: [...self.refusals].map(([node, { code, text }]) => ({ node, code, text })),
      },
      nodes: nodes.map(({ id, http, incarnation, draining, ...others }) => ({
        id,
        http: textOf(http),
        resp: textOf(this.#reports.get(id)?.report.resp),
        pid: this.#reports.get(id)?.report.pid ?? null,
        up: isUp(id),
        ...this.#silenceOf(id),
        clock: this.#reports.get(id)?.report.clock ?? null,
        speaks: this.#reports.get(id)?.report.speaks ?? null,
        release: this.#reports.get(id)?.report.release ?? null,
        ...(incarnation !== undefined && { incarnation: incarnation.slice(0, INCARNATION_CHARACTERS) }),
        ...(draining !== undefined && { draining }),
        ...labelsOf(others),
        ...this.#figuresOf(id),
      })),
      version,
      settledVersion,
      ...(clusterVersion !== undefined && { clusterVersion }),
      ...(gatheredOn !== undefined && { gatheredOn }),
      rules: rules === undefined ? null : { version: rules.version, rules: rules.rules },
      partitions: Array.from({ length: this.#partitionCount }, (_, id) =>
        partitionOf(id, { reports: reports.get(id) ?? [], isUp, wanted: replicasOf(id) }),
      ),
    };
  }

  /** Answer times of the last seconds, by step, of each node that is up. */
  latestTimes(): ReadonlyMap<NodeId, readonly number[]> {
    const found = new Map<NodeId, readonly number[]>();
    for (const [node, { report }] of this.#reports)
      if (report.pace !== undefined && this.#isUp(node)) found.set(node, report.pace.times);
    return found;
  }

  #isUp(node: NodeId): boolean {
    const seen = this.#reports.get(node);
    if (seen === undefined || seen.isLost === true) return false;
    return this.#monotonicMillis() - seen.atMillis <= SILENT_MILLIS_MAX;
  }

  #silenceOf(node: NodeId): Pick<ReportedNode, 'silentMillis'> {
    const seen = this.#reports.get(node);
    if (seen === undefined || this.#isUp(node)) return {};
    return { silentMillis: Math.round(this.#monotonicMillis() - seen.atMillis) };
  }

  #figuresOf(node: NodeId): Pick<ReportedNode, 'figures'> {
    const pace = this.#reports.get(node)?.report.pace;
    return pace === undefined ? {} : { figures: pace.figures };
  }

  /** The last reports, by partition, so that no partition has to search all reports. */
  #byPartition(): ReadonlyMap<number, ReplicaReport[]> {
    const found = new Map<number, ReplicaReport[]>();
    for (const [node, { report }] of this.#reports)
      for (const replica of report.partitions) {
        const reports = found.get(replica.partition);
        if (reports === undefined) found.set(replica.partition, [{ ...replica, node }]);
        else reports.push({ ...replica, node });
      }
    return found;
  }
}

type ReplicaReport = PartitionReport & { readonly node: NodeId };

function partitionOf(
  id: number,
  {
    reports,
    isUp,
    wanted,
  }: {
    readonly reports: readonly ReplicaReport[];
    readonly isUp: (node: NodeId) => boolean;
    /** The nodes that should hold it. */
    readonly wanted: readonly NodeId[];
  },
): ReportedPartition {
  const claims = reports.filter(({ node, isLeader }) => isLeader && isUp(node));
  const [leader] = claims.sort((a, b) => b.term - a.term);
  // Without a leader, the replica that has applied most knows the members best.
  const informed = leader ?? reports.toSorted((a, b) => b.applied - a.applied)[0];
  const { restoredMillis = 0 } = informed ?? {};
  const isPlaced = isSameSet(informed?.members ?? [], wanted);
  return {
    id,
    leader: leader?.node ?? 0,
    term: Math.max(0, ...reports.map(({ term }) => term)),
    commit: Math.max(0, ...reports.map(({ commit }) => commit)),
    placed: isPlaced,
    ...(!isPlaced && { wanted }),
    ...(restoredMillis > 0 && { restoredMillis }),
    replicas: (informed?.members ?? []).map((node) => {
      const seen = reports.find((report) => report.node === node);
      return { node, match: seen?.lastIndex ?? 0, applied: seen?.applied ?? 0 };
    }),
  };
}

function textOf(address: HostPort | undefined): string | null {
  return address === undefined ? null : addressText(address);
}

function isSameSet(a: readonly NodeId[], b: readonly NodeId[]): boolean {
  return a.length === b.length && a.every((node) => b.includes(node));
}
