/**
 * The live figures of a node for dashboards: rates and answer times of the last seconds, and recent faults. Plain
 * data; nothing is decided by it.
 */
import type { ClusterReport, Readiness } from './cluster-report.ts';
import type { UsageOutcome } from './usage.ts';

/**
 * With more partitions than this, a report takes milliseconds to check, so it is checked less often: once in
 * `partitions / PARTITIONS_PER_SECOND` seconds.
 */
export const PARTITIONS_PER_SECOND = 512;

/**
 * A `ClusterReport` without its rules, because these may be long. A reader fetches the rules when `rulesVersion` has
 * changed.
 */
export type LiveCluster = Omit<ClusterReport, 'rules'> & {
  /** Null if none are known yet. */
  readonly rulesVersion: number | null;
};

/** Replaces the rules of a report by their version. */
export function liveClusterOf({ rules, ...report }: ClusterReport): LiveCluster {
  return { ...report, rulesVersion: rules?.version ?? null };
}

/** Answer times of one or several nodes, from a sample of the answers. */
export interface LatestTimes {
  /** The length of the observed time, at most, in seconds. */
  readonly seconds: number;
  /** The number of answers that were timed. */
  readonly timed: number;
  /** The median and the 99th percentile in milliseconds. They may be up to a fifth too high. */
  readonly p50Millis: number;
  readonly p99Millis: number;
}

/** Answer times of all answers of these nodes together. */
export interface ClusterTimes extends LatestTimes {
  readonly nodes: readonly number[];
}

/** Rates of the whole cluster. */
export interface LiveRates {
  /** Answers per second, by outcome. */
  readonly perSecond: Readonly<Record<UsageOutcome, number>>;
  /** The nodes whose answers are counted, and the nodes that did not respond in time. */
  readonly nodes: readonly number[];
  readonly silent: readonly number[];
}

/** The live figures that one node reports. */
export interface LiveFigures {
  /** Milliseconds since 1970, by the clock of the reporting node. */
  readonly atMillis: number;
  /** The readiness of the reporting node. */
  readonly readiness: Readiness;
  /** Null until there are two readings of the same nodes to compare. */
  readonly rates: LiveRates | null;
  /** The answer times of the reporting node; null if it answered nothing recently. */
  readonly times: LatestTimes | null;
  /** The answer times of all nodes that are heard; null if none answered anything recently. */
  readonly clusterTimes: ClusterTimes | null;
  /** The reporting node's requests without an answer, and its proposals that are not applied yet. */
  readonly openRequests: number;
  readonly waitingProposals: number;
  /** The memory that its partitions use for keys, in bytes, and the bound above which new keys are refused. */
  readonly stateBytes: number;
  readonly stateBytesMax: number;
}

/**
 * The kinds of faults and recoveries:
 *
 * - `nodeSilent`, `nodeHeard`: `node` is not heard any more, or is heard again
 * - `leaderLost`: `node` no longer leads `partitions`, and there was no new leader or `node` is silent
 * - `leaderElected`: `node` leads `partitions` after a `leaderLost`
 * - `leaderMoved`: `node` leads `partitions` in place of another node that is still up
 * - `clockUnfit`, `clockFit`: the clock of `node` runs too fast or too slow to lead, or no longer does
 * - `drainBegun`, `drainEnded`: an operator drains `node`, or ended the drain
 */
export const FAULT_KINDS = [
  'nodeSilent',
  'nodeHeard',
  'leaderLost',
  'leaderElected',
  'leaderMoved',
  'clockUnfit',
  'clockFit',
  'drainBegun',
  'drainEnded',
] as const;
/** One of `FAULT_KINDS`. */
export type FaultKind = (typeof FAULT_KINDS)[number];

/** A fault or a recovery, as one node saw it. */
export interface Fault {
  /** Counts up from 1 since that node started. */
  readonly id: number;
  /** Milliseconds since 1970, by the clock of that node. */
  readonly atMillis: number;
  readonly kind: FaultKind;
  readonly node: number;
  /**
   * The number of partitions, and the first of them, at most `FAULT_PARTITIONS_MAX`. Absent if the fault is not about
   * partitions.
   */
  readonly count?: number;
  readonly partitions?: readonly number[];
}

/** The most partitions that a fault lists. */
export const FAULT_PARTITIONS_MAX = 16;
/** The most faults that a node remembers. Then it forgets the oldest. */
export const FAULTS_MAX = 100;

/** The monitoring functions of a node. */
export interface MonitoringApi {
  /**
   * The figures as of the previous call. Each call asks the other nodes anew, so one caller should call it about once
   * a second.
   */
  readonly figures: () => LiveFigures;
  /** The latest first, at most `FAULTS_MAX`. */
  readonly faults: () => readonly Fault[];
}
