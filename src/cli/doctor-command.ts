/**
 * `quorate doctor`: looks at the configuration, the nodes of this machine and the cluster they belong to, and says of everything what
 * it means and what to do. It changes nothing.
 */
import { nodeDirectory } from '../config/cluster-directory.ts';
import type { ClusterConfig } from '../config/config.ts';
import { hasStore } from '../../storage/files.ts';
import { ClusterCommandError } from './ask-node.ts';
import { healthOf, versionOf } from './cluster-health.ts';
import { examineConfig } from './doctor-config.ts';
import { examineNode } from './doctor-node.ts';
import { doorUrl } from './door-url.ts';
import { fail, type Finding, ok, warn } from './finding.ts';
import { survey } from './survey.ts';

export interface DoctorCommandOptions {
  /** With `cluster.json`. */
  readonly data: string;
  /** Of the node; absent: all whose database is there. */
  readonly id?: number;
  /** The URL of a node to ask about the cluster; absent: one that runs here. */
  readonly via?: string;
  /** Of the package. */
  readonly version: string;
  readonly json?: true;
  readonly print: (line: string) => void;
}

/** As `engines` of the package says. */
const NODE_MIN = [20, 19] as const;
const MARKS = { ok: 'ok  ', warn: 'WARN', fail: 'FAIL' } as const;

/** Whether nothing fails. */
export async function examine(options: DoctorCommandOptions): Promise<boolean> {
  const { data, version, json, print } = options;
  const { findings: ofConfig, config } = await examineConfig(data);
  const findings = [runtimeFinding(version), ...ofConfig];
  if (config !== undefined) findings.push(...(await machineFindings(options, config)));
  const isSound = findings.every(({ result }) => result !== 'fail');
  if (json === true) {
    print(JSON.stringify({ ok: isSound, findings }, null, 2));
    return isSound;
  }
  for (const { check, result, found, action } of findings) {
    print(`${MARKS[result]}  ${check}: ${found}`);
    if (action !== undefined) print(`      -> ${action}`);
  }
  const count = (result: Finding['result']): number =>
    findings.filter((each) => each.result === result).length;
  print(`${count('fail')} failed, ${count('warn')} to look at, ${count('ok')} in order`);
  return isSound;
}

function runtimeFinding(version: string): Finding {
  const check = 'Node.js';
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  const isEnough = major > NODE_MIN[0] || (major === NODE_MIN[0] && minor >= NODE_MIN[1]);
  const found = `${process.version}, with quorate ${version}`;
  return isEnough ? ok(check, found) : fail(check, found, `install Node.js ${NODE_MIN.join('.')} or newer`);
}

async function machineFindings(options: DoctorCommandOptions, config: ClusterConfig): Promise<Finding[]> {
  const { data, id, via, version } = options;
  const ids = id === undefined ? await idsHere(data, config) : [id];
  const findings: Finding[] = [];
  let running: string | undefined;
  for (const each of ids) {
    const node = config.nodes.find((known) => known.id === each);
    if (node === undefined) {
      const known = config.nodes.map((one) => one.id).join(', ');
      const action = 'give one of these with --id, or add it to nodes';
      findings.push(fail(`node ${each}`, `none of the nodes in cluster.json: ${known}`, action));
      continue;
    }
    const examined = await examineNode(data, config, node);
    findings.push(...examined.findings);
    if (examined.isRunning) running ??= doorUrl(node, config.tls);
  }
  if (ids.length === 0)
    findings.push(warn('nodes', `no database is in ${data}`, 'run this where a node runs, or give --id'));
  const asked = via ?? running;
  if (asked === undefined)
    findings.push(
      warn(
        'cluster',
        'no node of this machine runs, so nobody was asked',
        'start one, or give a node with --via',
      ),
    );
  else findings.push(...(await clusterFindings(asked, version)));
  return findings;
}

async function idsHere(directory: string, { nodes }: ClusterConfig): Promise<number[]> {
  const ids: number[] = [];
  for (const { id } of nodes) if (await hasStore(nodeDirectory(directory, id))) ids.push(id);
  return ids;
}

/** What the nodes say of each other: clocks, versions, and all that `quorate status` finds. */
async function clusterFindings(via: string, version: string): Promise<Finding[]> {
  try {
    const found = await survey({ via });
    const { problems, notes } = healthOf(found);
    const findings = problems.map((problem) => {
      const [what = '', ...todo] = problem.split('; ');
      return fail('cluster', what, todo.join('; ') || 'see `quorate status`');
    });
    if (problems.length === 0)
      findings.push(ok('cluster', `${found.nodes.length} nodes, nothing is wrong, as ${via} says`));
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
    // What somebody wanted, or passes, is nothing to repair.
    return [...findings, ...notes.map((note) => ok('note', note))];
  } catch (error) {
    if (!(error instanceof ClusterCommandError)) throw error;
    return [fail('cluster', error.message, 'start the node, or give another one with --via')];
  }
}
