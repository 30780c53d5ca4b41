/**
 * `quorate doctor`: checks the configuration, the nodes on this machine and their cluster, and says for each finding
 * what it means and what to do. It changes nothing.
 */
import { access } from 'node:fs/promises';
import { join } from 'node:path';
import { nodeDirectory } from '../config/cluster-directory.ts';
import { type ClusterConfig, ConfigError } from '../config/config.ts';
import { hasStore } from '../../storage/files.ts';
import { type AskedCluster, type ClusterOptions, clusterOf } from './asked-cluster.ts';
import { ClusterCommandError } from './ask-node.ts';
import { healthOf, versionOf } from './cluster-health.ts';
import { CONFIG_CHECK, examineConfig } from './doctor-config.ts';
import { examineNode, unreadableAction } from './doctor-node.ts';
import { fail, type Finding, ok, warn } from './finding.ts';
import { DATA_DEFAULT } from './options.ts';
import { survey } from './survey.ts';

/** The cluster and the nodes to check. */
export interface DoctorCommandOptions extends ClusterOptions {
  /** The node to check. Absent: all nodes with a database in the directory. */
  readonly id?: number;
  /** The version of this package. */
  readonly version: string;
  readonly json?: true;
  readonly print: (line: string) => void;
}

/** The oldest supported Node, as in `engines` of package.json. */
const NODE_MIN = [20, 19] as const;
const MARKS = { ok: 'ok  ', warn: 'WARN', fail: 'FAIL' } as const;

/** Runs all checks and prints the findings. Returns true if none fails. */
export async function examine(options: DoctorCommandOptions): Promise<boolean> {
  const { version, json, print } = options;
  const findings = [runtimeFinding(version), ...(await foundBy(options))];
  const isSound = findings.every(({ result }) => result !== 'fail');
  if (json === true) print(JSON.stringify({ ok: isSound, findings }, null, 2));
  else for (const line of linesOf(findings)) print(line);
  return isSound;
}

/**
 * One line for each finding, failures last, since the end of the output is read first. Equal findings of several nodes
 * are one line.
 */
function linesOf(findings: readonly Finding[]): string[] {
  const lines: string[] = [];
  const count = { ok: 0, warn: 0, fail: 0 };
  for (const kind of ['ok', 'warn', 'fail'] as const) {
    const nodes = new Map<string, string[]>();
    for (const { check, found, action } of findings.filter(({ result }) => result === kind)) {
      const [, node, rest = check] = /^node (\d+): (.*)$/.exec(check) ?? [];
      const text = `${rest}: ${found}${action === undefined ? '' : ` -> ${action}`}`;
      nodes.set(text, [...(nodes.get(text) ?? []), ...(node === undefined ? [] : [node])]);
    }
    for (const [text, ids] of nodes) {
      const whose = ids.length === 0 ? '' : `node${ids.length === 1 ? '' : 's'} ${ids.join(', ')}: `;
      count[kind] += 1;
      lines.push(`${MARKS[kind]}  ${whose}${text}`);
    }
  }
  return [...lines, `${count.fail} failed, ${count.warn} need attention, ${count.ok} ok`];
}

/** Checks only what was named: a node, or a directory and its machine. */
async function foundBy(options: DoctorCommandOptions): Promise<Finding[]> {
  const { node, data = DATA_DEFAULT, version } = options;
  if (node !== undefined) return clusterFindings(await clusterOf(options), version);
  const { findings, config } = await examineConfig(data);
  if (config !== undefined) return [...findings, ...(await machineFindings(options, config))];
  // Without options and without ./data, ask the default node, as all commands do.
  if (options.data === undefined && !(await isThere(data)))
    return [missingFinding(data), ...(await clusterFindings(await clusterOf(options), version))];
  return [...findings];
}

async function isThere(directory: string): Promise<boolean> {
  return access(join(directory, CONFIG_CHECK)).then(
    () => true,
    () => false,
  );
}

function missingFinding(data: string): Finding {
  return warn(
    CONFIG_CHECK,
    `there is no cluster in ${data}, so this machine was not checked`,
    'name the directory of the cluster with --data, or create one with `quorate init`',
  );
}

function runtimeFinding(version: string): Finding {
  const check = 'Node.js';
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  const isEnough = major > NODE_MIN[0] || (major === NODE_MIN[0] && minor >= NODE_MIN[1]);
  const found = `${process.version}, with quorate ${version}`;
  return isEnough ? ok(check, found) : fail(check, found, `install Node.js ${NODE_MIN.join('.')} or newer`);
}

async function machineFindings(options: DoctorCommandOptions, config: ClusterConfig): Promise<Finding[]> {
  const { id, data = DATA_DEFAULT, version } = options;
  const ids = id === undefined ? await idsHere(data, config) : [id];
  const findings: Finding[] = [];
  let cluster: AskedCluster | undefined;
  try {
    // First, so that this process trusts the nodes in the following checks.
    cluster = await clusterOf(options);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    findings.push(fail('cluster', error.message, 'fix that, or give the CA of the cluster with --ca'));
  }
  let isRunning = false;
  for (const each of ids) {
    const node = config.nodes.find((known) => known.id === each);
    if (node === undefined) {
      const known = config.nodes.map((one) => one.id).join(', ');
      const action = 'give the id of one of these, or add it to nodes';
      findings.push(fail(`node ${each}`, `none of the nodes in cluster.json: ${known}`, action));
      continue;
    }
    const examined = await examineNode(data, config, node);
    findings.push(...examined.findings);
    isRunning ||= examined.isRunning;
  }
  if (ids.length === 0)
    findings.push(warn('nodes', `no database is in ${data}`, 'run this where a node runs, or give its id'));
  if (cluster !== undefined) findings.push(...(await clusterFindings(cluster, version, isRunning)));
  return findings;
}

async function idsHere(directory: string, { nodes }: ClusterConfig): Promise<number[]> {
  const ids: number[] = [];
  for (const { id } of nodes) if (await hasStore(nodeDirectory(directory, id))) ids.push(id);
  return ids;
}

/**
 * Checks what the nodes report about each other: clocks, versions, and all that `quorate status` checks.
 *
 * @param isRunning true if a node should answer
 */
async function clusterFindings(cluster: AskedCluster, version: string, isRunning = true): Promise<Finding[]> {
  try {
    const found = await survey(cluster);
    const { problems, notes } = healthOf(found);
    const findings = problems.map((problem) =>
      (problem.passes === true ? warn : fail)('cluster', problem.found, problem.action),
    );
    if (problems.length === 0)
      findings.push(ok('cluster', `${found.nodes.length} nodes, no problems, as reported by ${found.asked}`));
    const clocks = found.nodes.map(({ node }) => `node ${node.id} ${node.clock ?? 'unknown'}`);
    findings.push(ok('clock rates', `against a majority: ${clocks.join(', ')}`));
    const others = found.nodes.flatMap(({ node, metrics }) => {
      const known = versionOf(metrics);
      return known === undefined || known === version ? [] : [`node ${node.id} runs ${known}`];
    });
    findings.push(
      others.length === 0
        ? ok('versions', `no node is known to run another version than ${version}`)
        : warn(
            'versions',
            others.join(', '),
            `bring all nodes to one version, one after the other; this command is ${version}`,
          ),
    );
    // Notes describe wanted or passing states, so there is nothing to repair.
    return [...findings, ...notes.map((note) => ok('note', note))];
  } catch (error) {
    if (!(error instanceof ClusterCommandError)) throw error;
    if (error.outcome === 'refused') return [fail('cluster', error.message, unreadableAction(error.message))];
    const nobody = `no node answers at ${cluster.urls.join(', ')}`;
    return [
      (isRunning ? fail : warn)('cluster', nobody, 'start its nodes, or name one that runs with --node'),
    ];
  }
}
