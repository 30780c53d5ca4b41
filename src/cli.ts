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
import { ConfigError } from './config.ts';
import { startNode } from './node.ts';
import { integerOption } from './options.ts';

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

program.parseAsync().catch((error: unknown) => {
  const message = error instanceof Error ? error.message : String(error);
  console.error(`quorate: ${message}`);
  process.exit(error instanceof ConfigError ? EXIT_USAGE : EXIT_FATAL);
});
