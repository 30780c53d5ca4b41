/**
 * The cluster as one node sees it: the answer of `GET /v1/cluster`, and the check of such a report for code that
 * reads one. Also what a node reports about itself: its figures and its readiness. It is for people, scripts and tests;
 * nothing is decided by it.
 */
import type { NodeLabels } from './node-address.ts';
import { RULE_CLOCKS, type Rule } from './rule.ts';

/**
 * The figures that a node reports to the others twice a second: latency, disk, clock and memory. For monitoring only;
 * nothing is decided by them.
 */
export interface NodeFigures {
  /**
   * The 99th percentile of its answer times in the last ten seconds, in milliseconds. It may be up to a fifth too
   * high. Null: it answered nothing.
   */
  readonly p99Millis: number | null;
  /** The same for synced writes to its disk. */
  readonly diskP99Millis: number | null;
  /**
   * How much faster its clock runs than the median of its peers' clocks, in parts per million. Null: not known yet.
   */
  readonly clockPpm: number | null;
  /** The memory that its partitions use for keys, in bytes, and the bound above which new keys are refused. */
  readonly stateBytes: number;
  readonly stateBytesMax: number;
}

/** True if `value` is a complete `NodeFigures`. */
function isNodeFigures(value: unknown): value is NodeFigures {
  if (typeof value !== 'object' || value === null) return false;
  const figures = value as Readonly<Record<keyof NodeFigures, unknown>>;
  return (
    [figures.p99Millis, figures.diskP99Millis, figures.clockPpm].every(
      (each) => each === null || typeof each === 'number',
    ) && [figures.stateBytes, figures.stateBytesMax].every((each) => typeof each === 'number')
  );
}

/** How a node's clock runs compared with the clocks of a majority. Only a node with a `fit` clock leads. */
export const CLOCK_STATES = ['fit', 'fast', 'slow'] as const;
/** One of `CLOCK_STATES`. */
export type ClockState = (typeof CLOCK_STATES)[number];

/**
 * The membership of a node in its cluster:
 *
 * - `waiting`: the node knows nothing of the cluster yet, or was not added to it
 * - `member`: the node belongs to the cluster
 * - `removed`: the node was removed. This is final: its id is never used again.
 * - `refused`: the other nodes refuse it, because it is not the node that its id belongs to, or is of another cluster
 */
const MEMBERSHIP_STATES = ['waiting', 'member', 'removed', 'refused'] as const;
/** One of `MEMBERSHIP_STATES`. */
export type MembershipState = (typeof MEMBERSHIP_STATES)[number];

/** About the node that was asked. */
export interface ReportedSelf {
  readonly id: number;
  readonly membership: MembershipState;
  /** Why the node was `removed` or `refused`. */
  readonly reason?: string;
  /** The nodes that refuse to speak with it, each with the error it gave. */
  readonly refusedBy: readonly { readonly node: number; readonly code: string; readonly text: string }[];
}

/** About one node of the cluster. Null means: not known yet. */
export interface ReportedNode extends NodeLabels {
  readonly id: number;
  /** `host:port` of its HTTP listener. */
  readonly http: string | null;
  /** `host:port` of its RESP listener (Redis protocol). Absent or null: it has none, or it is not known. */
  readonly resp?: string | null;
  readonly pid: number | null;
  /** True if the asked node hears from it. */
  readonly up: boolean;
  /**
   * Only if the node is not `up`: milliseconds since it was last heard. Absent if it was never heard. The other
   * fields are as old as this.
   */
  readonly silentMillis?: number;
  readonly clock: ClockState | null;
  /**
   * The first characters of the random id of its database, which no other database has. Absent until the
   * node has introduced itself.
   */
  readonly incarnation?: string;
  readonly draining?: true;
  /** The highest version that it speaks, as it last reported (see `VERSIONS`). */
  readonly speaks: number | null;
  /** The release of the package that it runs. */
  readonly release: string | null;
  /** The figures it last reported; absent if it reported none. */
  readonly figures?: NodeFigures;
}

/** About one partition. The log positions are those that each replica last reported. */
export interface ReportedPartition {
  readonly id: number;
  /** The id of the node that leads; 0 if no node claims to lead. */
  readonly leader: number;
  readonly term: number;
  readonly commit: number;
  /** True if the copies are on the nodes that should hold them, and on no other. */
  readonly placed: boolean;
  /** The ids of the nodes that should hold a copy. Absent if `placed`. */
  readonly wanted?: readonly number[];
  /**
   * Only after a restore or recovery: under some rule this partition denies every request for this many more
   * milliseconds, until all grants that may be missing have left the window. Absent if nothing is missing.
   */
  readonly restoredMillis?: number;
  readonly replicas: readonly { readonly node: number; readonly match: number; readonly applied: number }[];
}

/** The whole cluster as one node sees it. */
export interface ClusterReport {
  readonly self: ReportedSelf;
  readonly nodes: readonly ReportedNode[];
  /**
   * The version of the list of nodes. All partitions are placed as it demands when `settledVersion` has reached it.
   */
  readonly version: number;
  readonly settledVersion: number;
  /**
   * The version in which nodes write logs and snapshots (see `VERSIONS`). Absent until the asked node knows group 0.
   */
  readonly clusterVersion?: number;
  /**
   * The id of the node on which leaders gather while it has headroom. 0: each partition is led where its placement
   * says. Absent if the configuration of the asked node says `"leaders": "spread"`, or while that node loads.
   */
  readonly gatheredOn?: number;
  /** The rules in force as far as the asked node knows; null if it knows none. */
  readonly rules: { readonly version: number; readonly rules: readonly Rule[] } | null;
  /** Ordered by id. */
  readonly partitions: readonly ReportedPartition[];
}

/**
 * True if `value` is a `ClusterReport`. Unknown fields are allowed, so a newer node can add fields; a field that is
 * added here must be optional.
 */
export function isClusterReport(value: unknown): value is ClusterReport {
  return (
    isObject(value) &&
    isSelf(value['self']) &&
    isArrayOf(value['nodes'], isNode) &&
    isNumber(value['version']) &&
    isNumber(value['settledVersion']) &&
    (value['clusterVersion'] === undefined || isNumber(value['clusterVersion'])) &&
    (value['gatheredOn'] === undefined || isNumber(value['gatheredOn'])) &&
    isNullOr(value['rules'], isRules) &&
    isArrayOf(value['partitions'], isPartition)
  );
}

function isSelf(value: unknown): boolean {
  return (
    isObject(value) &&
    isNumber(value['id']) &&
    isOneOf(value['membership'], MEMBERSHIP_STATES) &&
    (value['reason'] === undefined || isString(value['reason'])) &&
    isArrayOf(
      value['refusedBy'],
      (each) => isObject(each) && isNumber(each['node']) && isString(each['code']) && isString(each['text']),
    )
  );
}

function isNode(value: unknown): boolean {
  return (
    isObject(value) &&
    isNumber(value['id']) &&
    isNullOr(value['http'], isString) &&
    (value['resp'] === undefined || isNullOr(value['resp'], isString)) &&
    isNullOr(value['pid'], isNumber) &&
    typeof value['up'] === 'boolean' &&
    (value['silentMillis'] === undefined || isNumber(value['silentMillis'])) &&
    isNullOr(value['clock'], (clock) => isOneOf(clock, CLOCK_STATES)) &&
    (value['incarnation'] === undefined || isString(value['incarnation'])) &&
    (value['draining'] === undefined || value['draining'] === true) &&
    (value['zone'] === undefined || isString(value['zone'])) &&
    (value['host'] === undefined || isString(value['host'])) &&
    isNullOr(value['speaks'], isNumber) &&
    isNullOr(value['release'], isString) &&
    (value['figures'] === undefined || isNodeFigures(value['figures']))
  );
}

function isRules(value: unknown): boolean {
  return isObject(value) && isNumber(value['version']) && isArrayOf(value['rules'], isRule);
}

function isRule(value: unknown): boolean {
  return (
    isObject(value) &&
    isString(value['id']) &&
    isNumber(value['limit']) &&
    isNumber(value['windowMillis']) &&
    isOneOf(value['clock'], RULE_CLOCKS)
  );
}

function isPartition(value: unknown): boolean {
  return (
    isObject(value) &&
    ['id', 'leader', 'term', 'commit'].every((name) => isNumber(value[name])) &&
    typeof value['placed'] === 'boolean' &&
    (value['wanted'] === undefined || isArrayOf(value['wanted'], isNumber)) &&
    (value['restoredMillis'] === undefined || isNumber(value['restoredMillis'])) &&
    isArrayOf(
      value['replicas'],
      (each) => isObject(each) && ['node', 'match', 'applied'].every((name) => isNumber(each[name])),
    )
  );
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isNumber(value: unknown): boolean {
  return typeof value === 'number';
}

function isString(value: unknown): boolean {
  return typeof value === 'string';
}

function isOneOf(value: unknown, names: readonly string[]): boolean {
  return typeof value === 'string' && names.includes(value);
}

function isNullOr(value: unknown, check: (value: unknown) => boolean): boolean {
  return value === null || check(value);
}

function isArrayOf(value: unknown, check: (value: unknown) => boolean): boolean {
  return Array.isArray(value) && value.every(check);
}

/** The readiness of a node: whether it can decide requests. */
export type Readiness =
  | { readonly status: 'ready' }
  /** Not every partition of this node has a leader. */
  | { readonly status: 'waiting for leaders' }
  /** The node knows nothing of the cluster yet, or was not added to it. */
  | { readonly status: 'waiting to be added' }
  /**
   * The node was removed from the cluster, or the others refuse it because its id belongs to another node. It will
   * not be ready again.
   */
  | { readonly status: 'removed' | 'refused'; readonly reason: string }
  /** The node has loaded `loaded` of the `of` groups on its disk. */
  | { readonly status: 'starting'; readonly loaded: number; readonly of: number }
  /**
   * An operator drains the node: its API listeners take no requests. It still leads `leads` groups, which other nodes
   * are to take over.
   */
  | { readonly status: 'draining'; readonly reason: string; readonly leads: number }
  /** The node still answers until it ends, but wants no new clients. */
  | { readonly status: 'stopping' };
