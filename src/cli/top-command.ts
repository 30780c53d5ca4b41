/**
 * `quorate top`: shows what a running cluster is doing, once or each second. All numbers are differences between two
 * readings of the metrics of all nodes.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { askNode } from './ask-node.ts';
import { growth, quantile, type Readings } from './prometheus-text.ts';
import type { AskedCluster } from './asked-cluster.ts';
import { survey, type Survey, type SurveyedNode } from './survey.ts';
import { textTable } from './text-table.ts';

/** Which cluster to show, and how often. */
export interface TopCommandOptions {
  readonly cluster: AskedCluster;
  readonly json?: true;
  /** Print one sample and end. */
  readonly once?: true;
  /** Time between two readings. */
  readonly intervalMillis: number;
  readonly print: (line: string) => void;
  /** Replaces the screen with these lines. Undefined: there is no terminal. */
  readonly screen?: (lines: readonly string[]) => void;
}

const TOP_KEYS = 5;
const KEYS_MILLIS_MAX = 2_000;

interface NodeSample {
  readonly id: number;
  readonly state: string;
  readonly leads: number | null;
  readonly answersPerSecond: number;
  readonly openRequests: number | null;
  readonly waitingProposals: number | null;
  readonly queueP99Millis: number | null;
  readonly commitP99Millis: number | null;
  readonly writeP99Millis: number | null;
  readonly replicationLag: number | null;
  readonly leaderChanges: number;
  readonly eventLoopP99Millis: number | null;
}

interface Sample {
  readonly seconds: number;
  readonly perSecond: Readonly<Record<string, number>>;
  readonly p50Millis: number | null;
  readonly p99Millis: number | null;
  readonly nodes: readonly NodeSample[];
  /** Null: the token may not see keys. */
  readonly top: readonly { readonly key: string; readonly rule: string; readonly denied: number }[] | null;
}

interface Reading {
  readonly atMillis: number;
  readonly found: Survey;
}

/**
 * Runs until Ctrl-C, or with `once` until one sample is printed.
 *
 * @throws ClusterCommandError if no node reports the state of the cluster
 */
export async function showTop(options: TopCommandOptions): Promise<void> {
  const { json, once, intervalMillis, print, screen } = options;
  let before = await read(options.cluster);
  for (;;) {
    await delay(intervalMillis);
    const after = await read(options.cluster);
    const sample = sampleOf(before, after, await topKeys(after.found.asked));
    before = after;
    if (json === true) print(JSON.stringify(sample));
    else if (once === true || screen === undefined) for (const line of linesOf(sample)) print(line);
    else screen(linesOf(sample));
    if (json === true || once === true || screen === undefined) return;
  }
}

async function read(cluster: AskedCluster): Promise<Reading> {
  const found = await survey(cluster);
  return { atMillis: performance.now(), found };
}

function sampleOf(before: Reading, after: Reading, top: Sample['top']): Sample {
  const seconds = (after.atMillis - before.atMillis) / 1_000;
  const outcomes = new Map<string, number>();
  const buckets = new Map<string, number>();
  const nodes = after.found.nodes.map((now) => {
    const earlier = before.found.nodes.find(({ node }) => node.id === now.node.id);
    // Without an earlier reading of the node, all that it ever counted would seem to have happened just now.
    if (now.metrics !== undefined && earlier?.metrics !== undefined) {
      add(outcomes, grownBy('quorate_decisions_total', 'outcome', earlier.metrics, now.metrics));
      add(buckets, grownBy('quorate_http_request_seconds_bucket', 'le', earlier.metrics, now.metrics));
    }
    return nodeSample(now, earlier?.metrics, seconds);
  });
  return {
    seconds,
    perSecond: Object.fromEntries([...outcomes].map(([name, count]) => [name, count / seconds])),
    p50Millis: millisOf(quantile(0.5, buckets)),
    p99Millis: millisOf(quantile(0.99, buckets)),
    nodes,
    top,
  };
}

function nodeSample(
  { node, readiness, metrics }: SurveyedNode,
  before: Readings | undefined,
  seconds: number,
): NodeSample {
  const grown = (name: string, label: string): Map<string, number> =>
    metrics === undefined || before === undefined ? new Map() : grownBy(name, label, before, metrics);
  const p99 = (what: string): number | null =>
    millisOf(quantile(0.99, grown(`quorate_${what}_seconds_bucket`, 'le')));
  const value = (name: string): number | null => metrics?.value(name) ?? null;
  const status = readiness?.['status'];
  return {
    id: node.id,
    state: typeof status === 'string' ? status : 'no answer',
    leads: value('quorate_leaderships'),
    answersPerSecond: sum(grown('quorate_decisions_total', 'outcome')) / seconds,
    openRequests: value('quorate_open_requests'),
    waitingProposals: value('quorate_waiting_proposals'),
    queueP99Millis: p99('queue'),
    commitP99Millis: p99('commit'),
    writeP99Millis: p99('disk_write'),
    replicationLag: value('quorate_replication_lag_entries'),
    leaderChanges: sum(grown('quorate_leader_changes_total', 'what')),
    eventLoopP99Millis: millisOf(metrics?.value('nodejs_eventloop_lag_p99_seconds')),
  };
}

function add(sums: Map<string, number>, grown: ReadonlyMap<string, number>): void {
  for (const [key, value] of grown) sums.set(key, (sums.get(key) ?? 0) + value);
}

function sum(counts: ReadonlyMap<string, number>): number {
  return [...counts.values()].reduce((all, count) => all + count, 0);
}

function grownBy(name: string, label: string, before: Readings, after: Readings): Map<string, number> {
  return growth(before.sumBy(name, label), after.sumBy(name, label));
}

/** Null: the value is above all bounds. */
function millisOf(seconds: number | undefined): number | null {
  return seconds === undefined || !Number.isFinite(seconds) ? null : seconds * 1_000;
}

/** The keys that are denied most, if the token may see keys. */
async function topKeys(node: string): Promise<Sample['top']> {
  const url = new URL(`/v1/usage?minutes=1&top=${TOP_KEYS}`, node);
  const { status, body } = await askNode(url, KEYS_MILLIS_MAX);
  const { denied } = (body['top'] ?? {}) as { denied?: { rule: string; key: string; count: number }[] };
  if (status !== 200 || !Array.isArray(denied)) return null;
  return denied.map(({ rule, key, count }) => ({ key, rule, denied: count }));
}

const HEAD = [
  'node',
  'state',
  'leads',
  'answers/s',
  'open',
  'waiting',
  'queue',
  'commit',
  'write',
  'lag',
  'leader changes',
  'loop',
];

function linesOf({ perSecond, p50Millis, p99Millis, nodes, top }: Sample): string[] {
  const rates = Object.entries(perSecond).map(([name, rate]) => `${name} ${rate.toFixed(0)}/s`);
  const rows = nodes.map((node) => [
    String(node.id),
    node.state,
    count(node.leads),
    node.answersPerSecond.toFixed(0),
    count(node.openRequests),
    count(node.waitingProposals),
    millis(node.queueP99Millis),
    millis(node.commitP99Millis),
    millis(node.writeP99Millis),
    count(node.replicationLag),
    String(node.leaderChanges),
    millis(node.eventLoopP99Millis),
  ]);
  const latency =
    p50Millis === null
      ? 'HTTP: no requests'
      : `HTTP p50 <= ${millis(p50Millis)}, p99 <= ${millis(p99Millis)}`;
  return [
    `decisions: ${rates.length === 0 ? 'none' : rates.join(', ')}; ${latency}`,
    '',
    ...textTable([HEAD, ...rows]),
    ...(top === null || top.length === 0 ? [] : ['', 'denied most (in up to two hours):']),
    ...(top ?? []).map(({ key, rule, denied }) => `  ${shownKey(key)} (${rule}): ${denied}`),
  ];
}

/** A key can contain control characters, so escape them for the terminal. */
function shownKey(key: string): string {
  return key.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '?');
}

function count(value: number | null): string {
  return value === null ? '-' : String(value);
}

function millis(value: number | null): string {
  return value === null ? '-' : `${value < 10 ? value.toFixed(1) : value.toFixed(0)} ms`;
}
