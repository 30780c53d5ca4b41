/**
 * What one node knows about the whole cluster, as `GET /v1/cluster` says it, and the check of such a report by whoever
 * reads one. For people, scripts and tests; nothing is decided by it.
 */
import { isNodeFigures, type NodeFigures } from './node-figures.ts';
import type { NodeLabels } from './node-labels.ts';
import { RULE_CLOCKS, type Rule } from './rule.ts';

/** How a clock runs against those of a majority; unless it is fit, its node leads nothing. */
export const CLOCK_STATES = ['fit', 'fast', 'slow'] as const;
export type ClockState = (typeof CLOCK_STATES)[number];

/**
 * Whether a node belongs to its cluster:
 * - `waiting`: it knows nothing of the cluster yet, or was not added to it.
 * - `member`: it belongs to the cluster.
 * - `removed`: it did, and does so no more. Final: its id does not come back.
 * - `refused`: the others do not take it for the node whose id it bears, or for one of their cluster.
 */
const MEMBERSHIP_STATES = ['waiting', 'member', 'removed', 'refused'] as const;
export type MembershipState = (typeof MEMBERSHIP_STATES)[number];

/** Of the node that is asked. */
export interface ReportedSelf {
  readonly id: number;
  readonly standing: MembershipState;
  /** Why it was `removed` or is `refused`. */
  readonly reason?: string;
  /** Who does not want to speak with it. */
  readonly refusedBy: readonly { readonly node: number; readonly code: string; readonly text: string }[];
}

/** Of a node that belongs to the cluster. Null: not known yet. */
export interface ReportedNode extends NodeLabels {
  readonly id: number;
  readonly http: string | null;
  /** Where it speaks the Redis protocol; absent or null where it does not, or nothing of it is known. */
  readonly resp?: string | null;
  readonly pid: number | null;
  readonly up: boolean;
  /** It is not `up`, and was heard so long ago; absent if it never was. What is said of it here is as old. */
  readonly silentMillis?: number;
  readonly clock: ClockState | null;
  /** The first characters of what tells its database from any other; absent until it introduced itself. */
  readonly incarnation?: string;
  readonly draining?: true;
  /** The highest version that it speaks, see `VERSIONS`, as it said last. */
  readonly speaks: number | null;
  /** Of the package that it runs. */
  readonly release: string | null;
  /** As it said last; absent where it said none. */
  readonly figures?: NodeFigures;
}

/** Positions are as last told by each replica. */
export interface ReportedPartition {
  readonly id: number;
  /** 0 while nobody claims to be. */
  readonly leader: number;
  readonly term: number;
  readonly commit: number;
  /** On the nodes that should hold it, and on no other. */
  readonly placed: boolean;
  /** The nodes that should hold it; absent where it is `placed`. */
  readonly wanted?: readonly number[];
  /**
   * The cluster was restored or recovered: so many milliseconds longer everybody is denied here under some rule, until all that may
   * be missing has left its window. Absent where nothing is missing.
   */
  readonly restoredMillis?: number;
  readonly replicas: readonly { readonly node: number; readonly match: number; readonly applied: number }[];
}

export interface ClusterReport {
  readonly self: ReportedSelf;
  readonly nodes: readonly ReportedNode[];
  /** Of the list of nodes. All partitions are where it wants them when `settledVersion` has reached it. */
  readonly version: number;
  readonly settledVersion: number;
  /** By which version nodes write logs and snapshots, see `VERSIONS`. Absent until the asked node knows group 0. */
  readonly clusterVersion?: number;
  /**
   * The node on which leaders gather while it has headroom; 0: each partition is led where its placement says. Absent if the configuration
   * of the asked node says `"leaders": "spread"`, or while that node loads.
   */
  readonly gatheredOn?: number;
  /** Those in force, as far as this node knows; null while it knows none. */
  readonly rules: { readonly version: number; readonly rules: readonly Rule[] } | null;
  /** By id. */
  readonly partitions: readonly ReportedPartition[];
}

/** True if `value` is a report; it may have fields that are not known here. Newer fields must be optional here. */
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
    isOneOf(value['standing'], MEMBERSHIP_STATES) &&
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
