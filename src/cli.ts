#!/usr/bin/env node
/** The `quorate` command: creates a cluster's directories and runs one node. */
import { Command } from 'commander';
import { pino } from 'pino';
import {
  createCluster,
  LOCAL_DEFAULTS,
  localConfig,
  nodeDirectory,
  readCluster,
} from './cluster-directory.ts';
import { ConfigError, type NodeAddress } from './config.ts';
import { joinCluster } from './join-cluster.ts';
import type { NodeChange } from './meta/meta-state.ts';
import { startNode } from './node.ts';
import { changeNodes, NodesCommandError } from './nodes-command.ts';
import { addressOption, integerOption } from './options.ts';
import { ForeignStoreError } from '../storage/errors.ts';

/** sysexits.h EX_SOFTWARE: the node stopped itself because its disk or state cannot be trusted. */
const EXIT_FATAL = 70;
const EXIT_USAGE = 64;
const CLOSE_MILLIS_MAX = 5_000;

async function runNode(options: { data: string; id: number; logLevel: string }): Promise<void> {
  const logger = pino({ level: options.logLevel, base: { node: options.id } });
  const config = await readCluster(options.data);
  if (config === undefined) {
    throw new ConfigError(
      options.data,
      'holds no cluster.json; create one with `quorate init` or `npm start`',
    );
  }
  const node = await startNode({
    config,
    nodeId: options.id,
    dataDirectory: nodeDirectory(options.data, options.id),
    logger,
    // At once: whatever is still queued depends on a disk that failed (P6).
    onFatal: () => process.exit(EXIT_FATAL),
  });
  let stopping = false;
  const stop = (reason: string): void => {
    if (stopping) process.exit(1);
    stopping = true;
    logger.info({ reason }, 'stopping');
    setTimeout(() => process.exit(1), CLOSE_MILLIS_MAX).unref();
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
}

const program = new Command('quorate').description('A rate limiter cluster that never grants one too many.');

program
  .command('init')
  .description('create the databases and cluster.json of a new local cluster')
  .option('--data <dir>', 'directory to create it in', './data')
  .option('--nodes <n>', 'number of nodes', integerOption, LOCAL_DEFAULTS.nodes)
  .option(
    '--partitions <n>',
    'number of partitions, fixed for good',
    integerOption,
    LOCAL_DEFAULTS.partitions,
  )
  .option('--limit <n>', 'requests per window and user', integerOption, LOCAL_DEFAULTS.limit)
  .option('--window <ms>', 'window in milliseconds', integerOption, LOCAL_DEFAULTS.windowMillis)
  .option('--base-port <n>', 'HTTP on n+1.., peers on n+1001..', integerOption, LOCAL_DEFAULTS.basePort)
  .action(async (options: { data: string; window: number } & Omit<typeof LOCAL_DEFAULTS, 'windowMillis'>) => {
    if ((await readCluster(options.data)) !== undefined) {
      throw new ConfigError(options.data, 'holds a cluster already; use another directory');
    }
    await createCluster(options.data, localConfig({ ...options, windowMillis: options.window }));
  });

program
  .command('node')
  .description('run one node of the cluster in a directory')
  .requiredOption('--id <n>', 'which node of cluster.json to run', integerOption)
  .option('--data <dir>', 'directory with cluster.json', './data')
  .option('--log-level <level>', 'trace, debug, info, warn, error or fatal', 'info')
  .action(runNode);

program
  .command('join')
  .description(
    'prepare the database of a node that joins a running cluster; run it, then `quorate nodes add`',
  )
  .requiredOption('--id <n>', 'its id, which no node ever had', integerOption)
  .requiredOption('--http <host:port>', 'where it will answer HTTP', addressOption)
  .requiredOption('--peer <host:port>', 'where the other nodes reach it', addressOption)
  .option('--data <dir>', "directory with a copy of the cluster's cluster.json", './data')
  .action(async ({ data, id, http, peer }: NodeAddress & { data: string }) => {
    for (const line of await joinCluster(data, { id, http, peer })) console.log(line);
  });

const VIA: [string, string, string] = ['--via <url>', 'a node of the cluster', 'http://127.0.0.1:8101'];
const TIMEOUT = ['--timeout <ms>', 'how long to wait until all partitions have moved'] as const;
const TIMEOUT_MILLIS = 600_000;
interface NodesOptions {
  readonly via: string;
  readonly timeout: number;
}
const change = async ({ via, timeout }: NodesOptions, wanted: NodeChange): Promise<void> =>
  changeNodes({ via, change: wanted, timeoutMillis: timeout, print: (line) => console.log(line) });

const nodes = program
  .command('nodes')
  .description('add, remove or replace a node of a running cluster, on the machine of a node');
nodes
  .command('add')
  .description('add a node that was prepared with `quorate join`; its share of the partitions moves there')
  .requiredOption('--id <n>', 'its id', integerOption)
  .requiredOption('--http <host:port>', 'where it answers HTTP', addressOption)
  .requiredOption('--peer <host:port>', 'where the other nodes reach it', addressOption)
  .option('--replace <id>', 'the node that leaves in the same change', integerOption)
  .option(...VIA)
  .option(...TIMEOUT, integerOption, TIMEOUT_MILLIS)
  .action(
    async ({ id, http, peer, replace, ...options }: NodesOptions & NodeAddress & { replace?: number }) =>
      change(options, { add: { id, http, peer }, ...(replace !== undefined && { remove: replace }) }),
  );
nodes
  .command('remove')
  .description('remove a node; stop it when this command says that all partitions have moved')
  .argument('<id>', 'which node leaves for good', integerOption)
  .option(...VIA)
  .option(...TIMEOUT, integerOption, TIMEOUT_MILLIS)
  .action(async (id: number, options: NodesOptions) => change(options, { remove: id }));

program.parseAsync().catch((error: unknown) => {
  const message = error instanceof Error ? error.message : String(error);
  console.error(`quorate: ${message}`);
  const isUsage =
    error instanceof ConfigError || error instanceof ForeignStoreError || error instanceof NodesCommandError;
  process.exit(isUsage ? EXIT_USAGE : EXIT_FATAL);
});
