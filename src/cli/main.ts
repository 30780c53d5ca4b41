#!/usr/bin/env node
/** The `quorate` command: creates a cluster's directories, runs one node, changes its nodes and rules. */
import type { NodeChange } from '../api/node-change.ts';
import { NODE_ID_MAX, type NodeAddress } from '../api/node-address.ts';
import { Option } from 'commander';
import { pino } from 'pino';
import { createCluster, nodeDirectory, readCluster } from '../config/cluster-directory.ts';
import { addBackupCommands } from './backup-program.ts';
import { CA, withTrust } from './ca-option.ts';
import { addCertsCommands } from './certs-commands.ts';
import { exposureOf, type Safeguards } from '../tls/exposure.ts';
import { openNodeTls } from '../tls/node-tls.ts';
import { complain, newCommand, packageVersion, runCommand } from './command-line.ts';
import { type ClusterConfig, ConfigError, NODES_MAX } from '../config/config.ts';
import { EXIT_FATAL, EXIT_MISTAKES, EXIT_TEMPORARY, explain } from './explain-error.ts';
import { joinCluster } from './join-cluster.ts';
import { makeAllCertificates } from './make-certificates.ts';
import { type NewClusterOptions, newClusterConfig, withNewClusterOptions } from './new-cluster.ts';
import { addCustomersCommands } from './customers-program.ts';
import { addOperationsCommands } from './operations-program.ts';
import { addTokensCommands } from './tokens-program.ts';
import { changeNodes } from './nodes-command.ts';
import { showTokenOf } from './shown-token.ts';
import { hasTokens } from '../node/access.ts';
import { readKnownMembers } from '../node/member-cache.ts';
import { drawToken } from '../config/token-secret.ts';
import type { QuorateNode } from '../node/node.ts';
import {
  addressOption,
  directoryOption,
  INSECURE,
  integerFrom,
  integerOption,
  JSON_OPTION,
  NODE,
  nodeOption,
  urlOption,
  VIA_DEFAULT,
} from './options.ts';

const idOption = integerFrom(1, NODE_ID_MAX);
/** Far above what the steps of a stop may take together. */
const CLOSE_MILLIS_MAX = 10_000;
const EXIT_OF_APPLY = { applied: 0, pending: EXIT_TEMPORARY, mistakes: EXIT_MISTAKES } as const;

interface RunOptions {
  readonly data: string;
  readonly id: number;
  readonly logLevel: string;
  readonly insecure: boolean;
}

async function safeguardsOf({ data, id }: RunOptions, config: ClusterConfig): Promise<Safeguards> {
  const known = await readKnownMembers(nodeDirectory(data, id));
  // One that joins decides nothing before it has heard of the others, and of their tokens.
  const isNew = known === undefined && !config.founders.some((founder) => founder.id === id);
  return { tls: config.tls, hasTokens: isNew || hasTokens(config, known) };
}

async function runNode(options: RunOptions): Promise<void> {
  const logger = pino({ level: options.logLevel, base: { node: options.id } });
  const config = await readCluster(options.data);
  if (config === undefined) {
    throw new ConfigError(
      options.data,
      'holds no cluster.json; create one with `npx quorate init` (in a clone: `npm start`)',
    );
  }
  const self = config.nodes.find(({ id }) => id === options.id);
  if (self === undefined) {
    const known = config.nodes.map(({ id }) => id).join(', ');
    throw new ConfigError(
      '--id',
      `${options.id} is none of the nodes in ${options.data}/cluster.json: ${known}`,
    );
  }
  const exposure = exposureOf(self, await safeguardsOf(options, config), options.insecure);
  if (exposure !== undefined) logger.warn(exposure);
  const tls =
    config.tls &&
    (await openNodeTls({
      settings: config.tls,
      directory: options.data,
      name: { clusterId: config.clusterId, nodeId: options.id },
      logger,
    }));
  if (tls !== undefined) process.on('SIGHUP', tls.reload);
  let node: QuorateNode | undefined;
  let isStopping = false;
  const stop = (reason: string): void => {
    logger.info({ reason }, isStopping ? 'already stopping' : 'stopping');
    if (isStopping) return;
    isStopping = true;
    // Before it took part it has promised nothing.
    if (node === undefined) process.exit(0);
    setTimeout(() => {
      logger.error({ afterMillis: CLOSE_MILLIS_MAX }, 'could not stop in time');
      process.exit(1);
    }, CLOSE_MILLIS_MAX).unref();
    node.close().then(
      () => process.exit(0),
      (error: unknown) => {
        logger.error({ err: error }, 'could not stop cleanly');
        process.exit(1);
      },
    );
  };
  process.on('SIGTERM', () => stop('SIGTERM'));
  process.on('SIGINT', () => stop('SIGINT'));
  // Started by the cluster script: do not outlive it.
  if (process.channel !== undefined) process.on('disconnect', () => stop('the starting process ended'));
  // Half of what a command takes to start, and only this one needs it.
  const { startNode } = await import('../node/node.ts');
  node = await startNode({
    config,
    ...(tls !== undefined && { tls }),
    nodeId: options.id,
    dataDirectory: nodeDirectory(options.data, options.id),
    version: packageVersion(),
    logger,
    // At once: whatever is still queued depends on a disk that failed (P6).
    onFatal(error) {
      complain(`node ${options.id} stops: ${explain(error).message}`);
      process.exit(EXIT_FATAL);
    },
  });
}

const program = newCommand('quorate')
  .description('A rate limiter cluster that never grants one too many.')
  .version(packageVersion(), '--version', 'print the version')
  .configureHelp({ showGlobalOptions: true })
  .option('--token-file <file>', 'a file with the token to show to nodes, instead of QUORATE_TOKEN')
  .hook('preAction', async (command) => {
    const { tokenFile } = command.opts<{ tokenFile?: string }>();
    if (tokenFile !== undefined) await showTokenOf(tokenFile);
  });

withNewClusterOptions(
  program.command('init').description('create the databases and cluster.json of a new local cluster'),
  { words: `1 to ${NODES_MAX}`, parse: integerFrom(1, NODES_MAX) },
)
  .option(
    '--admin-token',
    'close the cluster from its first day: write a token of role admin into cluster.json, and print it once',
  )
  .action(async (options: NewClusterOptions & { adminToken?: true }) => {
    if ((await readCluster(options.data)) !== undefined) {
      throw new ConfigError(options.data, 'holds a cluster already; use another directory');
    }
    const admin =
      options.adminToken === true ? drawToken({ role: 'admin', name: 'init' }, Date.now()) : undefined;
    const config = { ...newClusterConfig(options), ...(admin && { tokens: [admin.entry] }) };
    await createCluster(options.data, config);
    if (options.tls === true) await makeAllCertificates(options.data, config);
    console.log(
      `created a cluster of ${config.nodes.length} nodes in ${options.data}; run each of them with`,
    );
    for (const { id } of config.nodes) console.log(`  npx quorate node --id ${id} --data ${options.data}`);
    if (admin !== undefined) {
      console.log(`token ${admin.entry.id} of role admin; keep it now, it is not shown again:`);
      console.log(admin.token);
    }
  });

program
  .command('node')
  .description('run one node of the cluster in a directory')
  .requiredOption('--id <n>', 'which node of cluster.json to run', idOption)
  .option('--data <dir>', 'directory with cluster.json', directoryOption, './data')
  .addOption(
    new Option('--log-level <level>', 'how much it logs')
      .choices(['trace', 'debug', 'info', 'warn', 'error', 'fatal'])
      .default('info'),
  )
  .option(...INSECURE, false)
  .action(runNode);

program
  .command('join')
  .description(
    'prepare the database of a node that joins a running cluster; run it, then `npx quorate nodes add`',
  )
  .requiredOption('--id <n>', 'its id, which no node ever had', idOption)
  .requiredOption('--http <host:port>', 'where it will answer HTTP', addressOption)
  .requiredOption('--peer <host:port>', 'where the other nodes reach it', addressOption)
  .option('--resp <host:port>', 'where it will speak the Redis protocol', addressOption)
  .option('--data <dir>', "directory with a copy of the cluster's cluster.json", directoryOption, './data')
  .action(async ({ data, id, http, peer, resp }: NodeAddress & { data: string }) => {
    const node = { id, http, peer, ...(resp !== undefined && { resp }) };
    for (const line of await joinCluster(data, node)) console.log(line);
  });

addCertsCommands(program);
withTrust(program);

const VIA = ['--via <url>', 'a node of the cluster'] as const;
const TIMEOUT = ['--timeout <ms>', 'how long to wait until all partitions have moved'] as const;
const TIMEOUT_MILLIS = 600_000;
interface NodesOptions {
  readonly via: string;
  readonly timeout: number;
}
const print = (line: string): void => console.log(line);
const change = async ({ via, timeout }: NodesOptions, wanted: NodeChange): Promise<void> =>
  changeNodes({ via, change: wanted, timeoutMillis: timeout, print });

const nodes = program
  .command('nodes')
  .description('add, remove or replace a node of a running cluster, on the machine of a node');
nodes
  .command('add')
  .description(
    'add a node that was prepared with `npx quorate join`; its share of the partitions moves there',
  )
  .requiredOption('--id <n>', 'its id', idOption)
  .requiredOption('--http <host:port>', 'where it answers HTTP', addressOption)
  .requiredOption('--peer <host:port>', 'where the other nodes reach it', addressOption)
  .option('--replace <id>', 'the node that leaves in the same change', idOption)
  .option(...VIA, urlOption, VIA_DEFAULT)
  .option(...CA)
  .option(...TIMEOUT, integerOption, TIMEOUT_MILLIS)
  .action(
    async ({ id, http, peer, replace, ...options }: NodesOptions & NodeAddress & { replace?: number }) =>
      change(options, { add: { id, http, peer }, ...(replace !== undefined && { remove: replace }) }),
  );
nodes
  .command('remove')
  .description('remove a node; stop it when this command says that all partitions have moved')
  .argument('<id>', 'which node leaves for good', idOption)
  .option(...VIA, urlOption, VIA_DEFAULT)
  .option(...CA)
  .option(...TIMEOUT, integerOption, TIMEOUT_MILLIS)
  .action(async (id: number, options: NodesOptions) => change(options, { remove: id }));

const rules = program.command('rules').description('check, compare and apply documents of rules');
rules
  .command('check')
  .description('say everything that is wrong in a document of rules; exits with 1 if something is')
  .argument('<file>', 'rules.yaml, or descriptors of envoyproxy/ratelimit; - is standard input')
  .option(...JSON_OPTION)
  .action(async (file: string, options: { json?: true }) => {
    const { checkRules } = await import('./rules-command.ts');
    if (!(await checkRules(file, { ...options, print }))) process.exitCode = EXIT_MISTAKES;
  });
rules
  .command('diff')
  .description(
    'say what changes from one document to another, or from what a cluster decides by to a document; exits with 1 if one of them is wrong',
  )
  .argument('<old>', 'the document in force, or with --node the document to come; - is standard input')
  .argument('[new]', 'the document to come; - is standard input')
  .option(NODE, 'a node of the cluster whose rules are compared, instead of a document', nodeOption)
  .option(...CA)
  .option(...JSON_OPTION)
  .action(async (first: string, second: string | undefined, options: { json?: true; node?: string }) => {
    const { node } = options;
    if (node === undefined && second === undefined)
      throw new ConfigError('<new>', 'is missing: give two documents, or one and --node');
    if (node !== undefined && second !== undefined)
      throw new ConfigError('--node', 'stands for the document in force: give one document with it');
    const { compareRules } = await import('./rules-command.ts');
    const { compareWithCluster } = await import('./rules-apply.ts');
    const isRead =
      node === undefined
        ? await compareRules({ oldFile: first, newFile: second ?? '' }, { ...options, print })
        : await compareWithCluster(first, { ...options, node, print });
    if (!isRead) process.exitCode = EXIT_MISTAKES;
  });
rules
  .command('apply')
  .description(
    'check a document of rules, say what it changes, and have a cluster decide by it, on the machine of a node; exits with 1 if it is wrong, and with 75 if partitions without a leader decide by it later',
  )
  .argument('<file>', 'rules.yaml; - is standard input')
  .option(NODE, 'a node of the cluster', nodeOption, VIA_DEFAULT)
  .option(...CA)
  .option('--if-version <n>', 'only if this version is in force', integerOption)
  .option(...JSON_OPTION)
  .action(async (file: string, options: { json?: true; node: string; ifVersion?: number }) => {
    const { applyRules } = await import('./rules-apply.ts');
    process.exitCode = EXIT_OF_APPLY[await applyRules(file, { ...options, print })];
  });

addCustomersCommands(program, print);
addTokensCommands(program, print);
addBackupCommands(program, print);
addOperationsCommands(program, print);

await runCommand(program);
