/** `npm start`: a local cluster of real processes, created on first use, kept in a directory, watched until Ctrl-C. */
import { InvalidArgumentError } from 'commander';
import {
  createCluster,
  defaultRule,
  deleteCluster,
  LOCAL_DEFAULTS,
  localAddress,
  localConfig,
  readCluster,
  writeCluster,
} from '../src/config/cluster-directory.ts';
import { newCommand, runCommand } from '../src/cli/command-line.ts';
import type { ClusterReport } from '../src/api/cluster-report.ts';
import { type ClusterConfig, ConfigError, PARTITIONS_MAX, validateConfig } from '../src/config/config.ts';
import { AlreadyRunningError, NodeEndedError } from '../src/cli/explain-error.ts';
import { LIMIT_MAX, type RuleTable, WINDOW_MILLIS_MAX } from '../src/limiter/rules.ts';
import { type LocalNodes, localNodes } from '../src/cli/local-nodes.ts';
import { basePortOption, directoryOption, integerFrom } from '../src/cli/options.ts';
import { isOverruled } from '../src/node/rules-in-force.ts';
import { assertPortsFree } from './free-ports.ts';
import {
  clusterReport,
  type NodeProcess,
  stateOf,
  startNodeProcess,
  stopNodeProcess,
  waitUntilReady,
} from './processes.ts';

interface StartOptions {
  readonly data: string;
  readonly fresh: boolean;
  readonly nodes?: number;
  readonly partitions?: number;
  readonly limit?: number;
  readonly window?: number;
  readonly basePort?: number;
}

/** Without any progress of any node. */
const START_PATIENCE_MILLIS = 30_000;
const WATCH_MILLIS = 1_000;
const RULES_LOOK_MILLIS = 50;
const RULES_LOOKS_MAX = 40;

type ShownRules = Pick<RuleTable, 'version' | 'rules'>;

/**
 * The nodes to start, of the stored cluster with the settings that the command line changes, or of a new one. Nothing is
 * made, deleted or rewritten before it is certain that they can start: a refusal leaves everything as it was. Nothing ever
 * rewrites a fact of the cluster.
 */
async function prepare(options: StartOptions): Promise<ClusterConfig> {
  const found = await readCluster(options.data);
  const local = found === undefined ? undefined : await localNodes(options.data, found);
  // Nodes that run have these files open.
  if (found !== undefined && local !== undefined) await refuseIfRunning(onlyOf(found, local.here));
  const isNew = found === undefined || local === undefined || options.fresh;
  const config = isNew ? newCluster(options) : changed(found, local, options);
  const started = isNew ? config : toStart(config, local, options.data);
  await refuseIfRunning(started);
  await assertPortsFree(started);
  if (options.fresh) await deleteCluster(options.data);
  if (isNew) await createCluster(options.data, config);
  else if (JSON.stringify(config) !== JSON.stringify(found)) await writeCluster(options.data, config);
  return started;
}

function newCluster(options: StartOptions): ClusterConfig {
  return localConfig({
    nodes: options.nodes ?? LOCAL_DEFAULTS.nodes,
    partitions: options.partitions ?? LOCAL_DEFAULTS.partitions,
    limit: options.limit ?? LOCAL_DEFAULTS.limit,
    windowMillis: options.window ?? LOCAL_DEFAULTS.windowMillis,
    basePort: options.basePort ?? LOCAL_DEFAULTS.basePort,
  });
}

function changed(stored: ClusterConfig, local: LocalNodes, options: StartOptions): ClusterConfig {
  const { data, nodes, partitions } = options;
  const freshly = 'add --fresh to delete it, with all that was granted, and start over';
  if (nodes !== undefined && nodes !== stored.founders.length) {
    throw new ConfigError(
      '--nodes',
      `${nodes} does not fit the cluster in ${data}, which was created with ${stored.founders.length}: nodes are added ` +
        `with \`npx quorate join\` and \`npx quorate nodes add\`, and removed with \`npx quorate nodes remove\`; or ${freshly}`,
    );
  }
  if (partitions !== undefined && partitions !== stored.partitions) {
    throw new ConfigError(
      '--partitions',
      `${partitions} does not fit the cluster in ${data}, which has ${stored.partitions}, for good: ${freshly}`,
    );
  }
  return validateConfig({
    ...stored,
    nodes: addresses(stored, local, options),
    rules: rules(stored, local.rules, options),
  });
}

async function refuseIfRunning({ nodes }: Pick<ClusterConfig, 'nodes'>): Promise<void> {
  const answers = await Promise.all(
    nodes.map(async (node) => {
      const status = await clusterReport({ nodes: [node] });
      if (status === undefined) return [];
      const { id } = status.self;
      const pid = status.nodes.find((other) => other.id === id)?.pid ?? 'unknown';
      return [`node ${id} at ${node.http.host}:${node.http.port} (pid ${pid})`];
    }),
  );
  const running = answers.flat();
  if (running.length === 0) return;
  throw new AlreadyRunningError(
    `a cluster is already running on these ports: ${running.join(', ')}; stop it, or start another one with ` +
      `--data and --base-port`,
  );
}

/** Whoever else runs, of the same cluster. Some were started by hand, after they had ended here for example. */
async function sayWhoStays(config: ClusterConfig, nodes: readonly NodeProcess[]): Promise<void> {
  const status = await clusterReport(config);
  for (const { id, http, pid, up } of status?.nodes ?? []) {
    if (!up || nodes.some(({ child }) => child.pid === pid)) continue;
    say(`node ${id} (${http}, pid ${pid}) was not started by this command and keeps running`);
  }
}

/** Where the nodes of this directory listen. The others find them, whatever address they knew. */
function addresses(
  { nodes }: ClusterConfig,
  { here }: LocalNodes,
  { basePort }: StartOptions,
): ClusterConfig['nodes'] {
  if (basePort === undefined) return nodes;
  const others = nodes.filter(({ id }) => !here.includes(id));
  return [...here.map((id) => localAddress(id, basePort)), ...others].sort((a, b) => a.id - b.id);
}

function onlyOf(config: ClusterConfig, ids: readonly number[]): ClusterConfig {
  return { ...config, nodes: config.nodes.filter(({ id }) => ids.includes(id)) };
}

/**
 * The nodes to start: those of the replicated list that live in this directory. Names the others, and why each is not
 * started.
 */
function toStart(config: ClusterConfig, { here, members, removed }: LocalNodes, data: string): ClusterConfig {
  const ids = here.filter((id) => members.includes(id) && !removed.has(id));
  for (const id of here) {
    if (removed.has(id)) say(`node ${id} was removed from the cluster: not started`);
    else if (!members.includes(id)) {
      say(`node ${id} is prepared and does not belong to the cluster yet: not started`);
      say(`  run it with: npm run node -- --id ${id}, and add it with: npx quorate nodes add`);
    }
  }
  for (const { id } of config.nodes) {
    if (!members.includes(id) || here.includes(id)) continue;
    say(`node ${id} has no database in ${data}: not started`);
    say(`  if it was here it is lost, and has to be replaced by a node with a new id`);
  }
  const started = onlyOf(config, ids);
  const lost = ids.find((id) => !started.nodes.some((node) => node.id === id));
  if (lost !== undefined) {
    throw new ConfigError(
      'nodes',
      `of cluster.json say nothing about node ${lost}, which is to be started here`,
    );
  }
  if (ids.length === 0) throw new ConfigError(data, 'holds no node that belongs to the cluster');
  return started;
}

/**
 * A default rule that is given and is not in force gets a newer version than what is, so that the leaders replicate it.
 * Recorded grants stay.
 */
function rules(
  stored: ClusterConfig,
  inForce: RuleTable | undefined,
  options: StartOptions,
): ClusterConfig['rules'] {
  const [current, ...others] = stored.rules.rules;
  if (current === undefined) return stored.rules;
  const limit = options.limit ?? current.limit;
  const windowMillis = options.window ?? current.windowMillis;
  const isGiven = options.limit !== undefined || options.window !== undefined;
  const isOverruledNow = inForce !== undefined && isOverruled(stored.rules, inForce);
  const isOther = limit !== current.limit || windowMillis !== current.windowMillis;
  if (!isGiven || !(isOther || isOverruledNow)) return stored.rules;
  return {
    ...stored.rules,
    version: Math.max(stored.rules.version, inForce?.version ?? 0) + 1,
    rules: [{ ...defaultRule(limit, windowMillis), id: current.id, clock: current.clock }, ...others],
  };
}

function say(line: string): void {
  console.log(line);
}

function describeLeaders(status: ClusterReport): string {
  const ids = [...new Set([0, ...status.nodes.map((node) => node.id)])];
  const parts = ids.map((id) => {
    const led = status.partitions
      .filter((partition) => partition.leader === id)
      .map((partition) => partition.id);
    return led.length === 0 ? undefined : `${id === 0 ? 'nobody' : `node ${id}`} leads ${led.join(' ')}`;
  });
  return `partitions: ${parts.filter((part) => part !== undefined).join('; ')}`;
}

function sayRules({ version, rules }: ShownRules, inForce: ShownRules): void {
  for (const { id, limit, windowMillis } of inForce.rules)
    say(`  rule '${id}': ${limit} per ${windowMillis} ms and user, on all nodes together`);
  if (!isOverruled({ version, rules }, inForce)) return;
  say(
    `  cluster.json says something else (rules version ${version}; version ${inForce.version} is in force): raise its`,
  );
  say(`  rules.version above ${inForce.version} and start again, or use --limit and --window`);
}

/** The rules of the file reach the partitions soon after these have leaders. */
async function waitForRules(config: ClusterConfig, status: ClusterReport): Promise<ClusterReport> {
  let latest = status;
  for (let i = 0; i < RULES_LOOKS_MAX && (latest.rules?.version ?? 0) < config.rules.version; i += 1) {
    await new Promise((resolve) => setTimeout(resolve, RULES_LOOK_MILLIS));
    latest = (await clusterReport(config)) ?? latest;
  }
  return latest;
}

function introduce(config: ClusterConfig, options: StartOptions, status: ClusterReport): void {
  const [first] = config.nodes;
  if (first === undefined) return;
  say('');
  for (const { id, http } of config.nodes) say(`  node ${id}  http://${http.host}:${http.port}`);
  say('');
  say(`  ${describeLeaders(status)}`);
  sayRules(config.rules, status.rules ?? config.rules);
  say(`  data and logs in ${options.data}; any node answers any request:`);
  say('');
  say(
    `  curl -s http://${first.http.host}:${first.http.port}/v1/allow -H 'content-type: application/json' \\`,
  );
  say(`    -d '{"userId":"ada"}'`);
  say('');
  say('Ctrl-C stops the cluster.');
}

/** Reports nodes that end or come back, and leaders that move, until the end. */
class Watcher {
  readonly #config: ClusterConfig;
  #leaders: string;
  readonly #down = new Set<number>();

  readonly #exclude: (id: number, reason: string) => void;

  constructor(config: ClusterConfig, status: ClusterReport, exclude: (id: number, reason: string) => void) {
    this.#config = config;
    this.#leaders = describeLeaders(status);
    this.#exclude = exclude;
  }

  nodeEnded(node: NodeProcess, code: number | null, signal: string | null, options: StartOptions): void {
    const { id, logPath } = node;
    this.#down.add(id);
    const how = signal === null ? `ended with exit code ${code}` : `was ended by ${signal}`;
    const data = options.data === './data' ? '' : ` --data ${options.data}`;
    say(`node ${id} ${how} (log: ${logPath})`);
    const words = node.lastWords();
    if (words !== undefined) say(`  ${words}`);
    say(`  restart it with: npm run node -- --id ${id}${data}`);
  }

  async look(): Promise<void> {
    for (const node of this.#config.nodes) {
      const { excluded } = await stateOf(node);
      if (excluded !== undefined) this.#exclude(node.id, excluded);
    }
    const status = await clusterReport(this.#config);
    if (status === undefined) return;
    for (const node of status.nodes) {
      if (node.up && this.#down.delete(node.id)) say(`node ${node.id} is up again (pid ${node.pid})`);
    }
    const leaders = describeLeaders(status);
    if (leaders !== this.#leaders) say(leaders);
    this.#leaders = leaders;
  }
}

async function main(options: StartOptions): Promise<void> {
  let config: ClusterConfig | undefined;
  let nodes: readonly NodeProcess[] = [];
  let stopping = false;
  const stop = async (): Promise<void> => {
    if (stopping) return;
    stopping = true;
    say('\nstopping');
    if (config !== undefined) await sayWhoStays(config, nodes);
    await Promise.all(nodes.map((node) => stopNodeProcess(node)));
    process.exit(0);
  };
  process.on('SIGINT', () => void stop());
  process.on('SIGTERM', () => void stop());
  // Nobody reads on, as with `npm start | head`.
  process.stdout.on('error', () => void stop());
  config = await prepare(options);
  say(`starting ${config.nodes.length} nodes of cluster ${config.clusterId}`);
  nodes = config.nodes.map(({ id }) => startNodeProcess(options.data, id));
  const excluded = new Set<number>();
  const exclude = (id: number, reason: string): void => {
    if (excluded.has(id)) return;
    excluded.add(id);
    say(`node ${id} is stopped: ${reason}`);
    const node = nodes.find((other) => other.id === id);
    if (node !== undefined) void stopNodeProcess(node);
  };

  const failed = Promise.race(
    nodes.map(async ({ id, exited, logPath, lastWords }) => {
      const { code, signal } = await exited;
      // One that is excluded ends because it is stopped.
      if (excluded.has(id)) return new Promise<never>(() => {});
      const why = lastWords() ?? (signal === null ? `exit code ${code}` : `ended by ${signal}`);
      throw new NodeEndedError(
        `node ${id} ended before the cluster was ready: ${why} (log: ${logPath})`,
        code,
      );
    }),
  );
  let status: ClusterReport;
  try {
    const watch = { say, excluded: exclude };
    status = await Promise.race([waitUntilReady(config, START_PATIENCE_MILLIS, watch), failed]);
  } catch (error) {
    if (stopping) return;
    stopping = true;
    await Promise.all(nodes.map((node) => stopNodeProcess(node)));
    throw error;
  }
  failed.catch(() => undefined);
  const started = { ...config, nodes: config.nodes.filter(({ id }) => !excluded.has(id)) };
  introduce(started, options, await waitForRules(started, status));
  const watcher = new Watcher(started, status, exclude);
  for (const node of nodes) {
    void node.exited.then(({ code, signal }) => {
      if (!stopping && !excluded.has(node.id)) watcher.nodeEnded(node, code, signal, options);
    });
  }
  setInterval(() => void watcher.look(), WATCH_MILLIS);
}

function nodesOption(text: string): number {
  if (text !== '3' && text !== '5') throw new InvalidArgumentError('expected 3 or 5');
  return Number(text);
}

const program = newCommand('npm start --')
  .description('Start a local cluster: three processes, each with its own LevelDB, replicating every grant.')
  .option('--data <dir>', 'where the databases and logs are kept', directoryOption, './data')
  .option('--fresh', 'delete the cluster in the data directory first', false)
  .option('--nodes <n>', 'number of nodes, 3 or 5 (default 3)', nodesOption)
  .option(
    '--partitions <n>',
    'number of partitions, fixed once created (default 16)',
    integerFrom(1, PARTITIONS_MAX),
  )
  .option('--limit <n>', 'requests per window and user (default 100)', integerFrom(0, LIMIT_MAX))
  .option('--window <ms>', 'window in milliseconds (default 60000)', integerFrom(1, WINDOW_MILLIS_MAX))
  .option('--base-port <n>', 'HTTP on n+1.., peers on n+1001.. (default 8100)', basePortOption)
  .action(main);

await runCommand(program);
