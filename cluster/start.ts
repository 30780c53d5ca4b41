/**
 * `npm start`: runs a local cluster of real processes until Ctrl-C. It is created on the first start and kept in a
 * directory.
 */
import { InvalidArgumentError } from 'commander';
import type { ClusterReport } from '../src/api/cluster-report.ts';
import { newCommand, runCommand } from '../src/cli/command-line.ts';
import { withNewClusterOptions } from '../src/cli/new-cluster.ts';
import type { ClusterConfig } from '../src/config/config.ts';
import { INSECURE } from '../src/cli/options.ts';
import { introduce, rulesShown } from './introduce.ts';
import { prepare, type StartOptions } from './prepare.ts';
import { clusterReport, waitUntilReady } from './processes.ts';
import { StartedNodes } from './started-nodes.ts';
import { Watcher } from './watcher.ts';

/** Longest time in which no node makes progress. */
const START_PATIENCE_MILLIS = 30_000;
const WATCH_MILLIS = 1_000;
const RULES_CHECK_MILLIS = 50;
const RULES_CHECKS_MAX = 40;

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** Prints the nodes of the cluster that keep running because another command started them. */
async function sayWhoStays(config: ClusterConfig, nodes: StartedNodes | undefined): Promise<void> {
  const status = await clusterReport(config);
  for (const { id, http, pid, up } of status?.nodes ?? []) {
    if (pid === null || nodes?.has(pid) === true) continue;
    // On a busy machine the report can say that a running node is down, so check its process.
    if (!up && !isAlive(pid)) continue;
    console.log(`node ${id} (${http}, pid ${pid}) was not started by this command and keeps running`);
  }
}

/** Waits for the first rules, which reach the partitions soon after these have leaders. */
async function waitForRules(config: ClusterConfig, status: ClusterReport): Promise<ClusterReport> {
  let latest = status;
  for (let i = 0; i < RULES_CHECKS_MAX && latest.rules === null; i += 1) {
    await new Promise((resolve) => setTimeout(resolve, RULES_CHECK_MILLIS));
    latest = (await clusterReport(config)) ?? latest;
  }
  return latest;
}

async function main(options: StartOptions): Promise<void> {
  let config: ClusterConfig | undefined;
  let nodes: StartedNodes | undefined;
  let isStopping = false;
  const stop = async (): Promise<void> => {
    if (isStopping) return;
    isStopping = true;
    console.log('\nstopping');
    if (config !== undefined) await sayWhoStays(config, nodes);
    await nodes?.stop();
    process.exit(0);
  };
  process.on('SIGINT', () => void stop());
  process.on('SIGTERM', () => void stop());
  // The reader has closed the pipe, as in `npm start | head`.
  process.stdout.on('error', () => void stop());
  config = await prepare(options);
  console.log(`starting ${config.nodes.length} nodes of cluster ${config.clusterId}`);
  const started = new StartedNodes(
    options.data,
    config.nodes.map(({ id }) => id),
    options.insecure === true,
  );
  nodes = started;
  let status: ClusterReport;
  try {
    const watch = { say: (line: string) => console.log(line), excluded: started.exclude };
    const ready = waitUntilReady(config, START_PATIENCE_MILLIS, watch);
    status = await Promise.race([ready, started.untilOneEnds()]);
  } catch (error) {
    if (isStopping) return;
    isStopping = true;
    await started.stop();
    throw error;
  }
  const running = { ...config, nodes: config.nodes.filter(({ id }) => !started.isExcluded(id)) };
  status = await waitForRules(running, status);
  introduce(running, { data: options.data, rules: await rulesShown(running) }, status);
  const watcher = new Watcher({ config: running, status, data: options.data, exclude: started.exclude });
  started.onEnded((node, exit) => {
    if (!isStopping) watcher.nodeEnded(node, exit);
  });
  setInterval(() => void watcher.check(), WATCH_MILLIS);
}

function nodesOption(text: string): number {
  if (text !== '3' && text !== '5') throw new InvalidArgumentError('expected 3 or 5');
  return Number(text);
}

const program = withNewClusterOptions(
  newCommand('npm start --').description(
    'Start a local cluster: three processes, each with its own LevelDB, replicating every grant.',
  ),
  { words: '3 or 5', parse: nodesOption },
)
  .option('--fresh', 'delete the cluster in the data directory first', false)
  .option(...INSECURE, false)
  .action(main);

await runCommand(program);
