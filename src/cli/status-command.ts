/** `quorate status`: prints the state of a running cluster on one screen. It changes nothing. */
import { healthOf, problemText, versionOf } from './cluster-health.ts';
import type { AskedCluster } from './asked-cluster.ts';
import { survey, type Survey, type SurveyedNode } from './survey.ts';
import { bytesText, textTable } from './text-table.ts';

/** Which cluster to show, and how to print. */
export interface StatusCommandOptions {
  readonly cluster: AskedCluster;
  readonly json?: true;
  readonly print: (line: string) => void;
}

/** The row of a node. Null: not known. */
interface ShownNode {
  readonly id: number;
  readonly http: string | null;
  readonly state: string;
  readonly draining: boolean;
  readonly zone: string | null;
  readonly host: string | null;
  readonly leads: number;
  readonly version: string | null;
  readonly incarnation: string | null;
  readonly clock: string | null;
  readonly clockPpm: Readonly<Record<string, number>>;
  readonly diskFreeBytes: number | null;
  readonly databaseBytes: number | null;
  /** Entries not yet applied, in the partition that lacks most. */
  readonly lag: number;
}

/** @throws ClusterCommandError if no node reports the state of the cluster */
export async function showStatus(options: StatusCommandOptions): Promise<'healthy' | 'degraded'> {
  const { cluster, json, print } = options;
  const found = await survey(cluster);
  const { notes, partitions, ...health } = healthOf(found);
  const problems = health.problems.map(problemText);
  const { report, asked } = found;
  const nodes = found.nodes.map((each) => shown(each, found));
  const state = problems.length === 0 ? 'healthy' : 'degraded';
  if (json === true) {
    const { version, settledVersion, rules, clusterVersion = null } = report;
    const unreachable = found.nodes.filter((each) => each.problem !== undefined).map(({ node }) => node.id);
    const facts = {
      version,
      settledVersion,
      clusterVersion,
      rulesVersion: rules?.version ?? null,
      gatheredOn: report.gatheredOn ?? null,
    };
    print(
      JSON.stringify({ state, asked, ...facts, nodes, partitions, unreachable, problems, notes }, null, 2),
    );
    return state;
  }
  const { count, withoutLeader, moving } = partitions;
  print(
    `${nodes.length} nodes, ${count} partitions (${count - withoutLeader.length} with a leader, ${count - moving.length} in place), ` +
      `rules version ${report.rules?.version ?? 'none'}, as ${asked} says`,
  );
  print(count > 0 && withoutLeader.length === count ? NO_LEADERS : leadersText(report.gatheredOn));
  print('');
  for (const line of textTable(rowsOf(nodes))) print(line);
  print('');
  for (const note of notes) print(`note: ${note}`);
  for (const problem of problems) print(`problem: ${problem}`);
  print(state);
  return state;
}

const NO_LEADERS =
  'leaders: none, because no partition has a majority of its copies, or none has elected one yet';

/** Says why the leaders are where they are. */
function leadersText(gatheredOn: number | undefined): string {
  if (gatheredOn === undefined)
    return 'leaders: each partition is led by the node that its placement prefers';
  return gatheredOn === 0
    ? 'leaders: spread over the nodes, because one node was too busy to lead all, or no node may lead all'
    : `leaders: gathered on node ${gatheredOn} on purpose: it can carry the load, and one disk write serves many requests`;
}

const HEAD = [
  'node',
  'http',
  'state',
  'leads',
  'version',
  'incarnation',
  'clock',
  'disk free',
  'database',
  'lag',
];

/** The table of nodes. The columns for labels appear only if a node has labels. */
function rowsOf(nodes: readonly ShownNode[]): string[][] {
  const rows = [HEAD, ...nodes.map(rowOf)];
  if (nodes.every(({ zone, host }) => zone === null && host === null)) return rows;
  const labels = [['zone', 'host'], ...nodes.map(({ zone, host }) => [zone ?? '-', host ?? '-'])];
  return rows.map((row, i) => [...row, ...(labels[i] ?? [])]);
}

function rowOf(node: ShownNode): string[] {
  const { id, http, state, leads, version, incarnation, clock, diskFreeBytes, databaseBytes, lag } = node;
  const ppms = Object.values(node.clockPpm).map(Math.abs);
  const ppm = ppms.length === 0 ? '' : ` (${Math.round(Math.max(...ppms))} ppm)`;
  return [
    String(id),
    http ?? '?',
    state,
    String(leads),
    version ?? '?',
    incarnation ?? '?',
    `${clock ?? '?'}${ppm}`,
    diskFreeBytes === null ? '?' : bytesText(diskFreeBytes),
    databaseBytes === null ? '?' : bytesText(databaseBytes),
    String(lag),
  ];
}

function shown({ node, readiness, metrics }: SurveyedNode, { report }: Survey): ShownNode {
  const { id, http, up, clock, incarnation = null, draining = false, zone = null, host = null } = node;
  const said = readiness?.['status'];
  const lags = report.partitions.flatMap(({ commit, replicas }) =>
    replicas.filter((replica) => replica.node === id).map(({ applied }) => Math.max(0, commit - applied)),
  );
  const rates = [...(metrics?.sumBy('quorate_clock_rate_ppm', 'peer') ?? [])];
  return {
    id,
    http,
    state: typeof said === 'string' ? said : up ? 'up, no answer' : 'down',
    draining,
    zone,
    host,
    leads: report.partitions.filter(({ leader }) => leader === id).length,
    version: versionOf(metrics) ?? null,
    incarnation,
    clock: up ? clock : null,
    clockPpm: Object.fromEntries(rates),
    diskFreeBytes: metrics?.value('quorate_disk_free_bytes') ?? null,
    databaseBytes: metrics?.value('quorate_disk_bytes') ?? null,
    lag: Math.max(0, ...lags),
  };
}
