/**
 * What a node tells again and again of what happens just now, for people who look: rates and times of the last seconds, and what
 * went wrong lately. Plain data; nothing is decided by it.
 */
import type { ClusterReport } from './cluster-report.ts';
import type { Readiness } from './readiness.ts';
import type { UsageOutcome } from './usage.ts';

/** To look at a report takes milliseconds where there are more: of so many partitions for each second it is looked at less often. */
export const PARTITIONS_PER_SECOND = 512;

/** The report without its rules, which may be long: whoever wants them asks when their version is another. */
export type LiveCluster = Omit<ClusterReport, 'rules'> & {
  /** Null while none are known. */
  readonly rulesVersion: number | null;
};

export function liveClusterOf({ rules, ...report }: ClusterReport): LiveCluster {
  return { ...report, rulesVersion: rules?.version ?? null };
}

/** How long the answers of one node, or of several, took; one in so many is timed. */
export interface LatestTimes {
  /** Over so many seconds at most. */
  readonly seconds: number;
  /** So many were timed. */
  readonly timed: number;
  /** The median and the 99th percentile, in milliseconds, a fifth too long at most. */
  readonly p50Millis: number;
  readonly p99Millis: number;
}

/** Of the answers of these nodes together. */
export interface ClusterTimes extends LatestTimes {
  readonly nodes: readonly number[];
}

/** Of the whole cluster. */
export interface LiveRates {
  /** Answers per second, by outcome. */
  readonly perSecond: Readonly<Record<UsageOutcome, number>>;
  /** Whose answers they are, and which nodes said nothing in time. */
  readonly nodes: readonly number[];
  readonly silent: readonly number[];
}

export interface LiveFigures {
  /** Since 1970, by the clock of the node that tells. */
  readonly atMillis: number;
  /** Of the node that tells. */
  readonly readiness: Readiness;
  /** Null while there are no two readings to compare, or not of the same nodes. */
  readonly rates: LiveRates | null;
  /** Of the node that tells; null where it answered nothing lately. */
  readonly times: LatestTimes | null;
  /** Of all nodes that are heard; null where none answered anything lately. */
  readonly clusterTimes: ClusterTimes | null;
  /** Of the node that tells: requests without an answer yet, and proposals that are not applied yet. */
  readonly openRequests: number;
  readonly waitingProposals: number;
  /** What its partitions remember, in bytes, and beyond which new keys are refused. */
  readonly stateBytes: number;
  readonly stateBytesMax: number;
}

/**
 * - `nodeSilent`, `nodeHeard`: `node` says nothing any more, or again
 * - `leaderLost`: `node` leads `partitions` no more, and nobody else did or it was silent; `leaderElected`: `node` leads them after that
 * - `leaderMoved`: `node` leads `partitions` in place of another that goes on
 * - `clockUnfit`, `clockFit`: the clock of `node` runs too fast or slow to lead, or no more
 * - `drainBegun`, `drainEnded`: an operator drains `node`, or has ended that
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
export type FaultKind = (typeof FAULT_KINDS)[number];

/** Something that went wrong, or right again, as one node saw it. */
export interface Fault {
  /** Counts up from 1 since that node started. */
  readonly id: number;
  /** Since 1970, by its clock. */
  readonly atMillis: number;
  readonly kind: FaultKind;
  readonly node: number;
  /** How many partitions, and the first of them, at most `FAULT_PARTITIONS_MAX`; absent where it is not about partitions. */
  readonly count?: number;
  readonly partitions?: readonly number[];
}

/** Partitions that a fault names. */
export const FAULT_PARTITIONS_MAX = 16;
/** Faults that a node remembers; then it forgets the oldest. */
export const FAULTS_MAX = 100;

/** What the node behind a door tells of these things. */
export interface MonitoringBehindDoor {
  /** As they were when this was asked last. It asks the other nodes anew, so it is to be asked once a second or so, and not by many. */
  readonly figures: () => LiveFigures;
  /** The latest first, at most `FAULTS_MAX`. */
  readonly faults: () => readonly Fault[];
}
