/** `quorate node`: its options, and the life of a node from start to stop. */
import { type Command, Option } from 'commander';
import type { NodeAddress } from '../api/node-address.ts';
import { nodeDirectory, readCluster } from '../config/cluster-directory.ts';
import {
  type ClusterConfig,
  ConfigError,
  LOG_LEVEL_DEFAULT,
  LOG_LEVELS,
  type LogLevel,
} from '../config/config.ts';
import { hasTokens } from '../node/access.ts';
import { readKnownMembers } from '../node/member-cache.ts';
import type { QuorateNode } from '../node/node.ts';
import { listeningAt } from '../node/peer-addresses.ts';
import { exposureOf, type Safeguards } from '../tls/exposure.ts';
import { openNodeTls } from '../tls/node-tls.ts';
import { explained, complain } from './command-line.ts';
import { EXIT_FATAL, explain } from './explain-error.ts';
import { LOG_FORMATS, type LogFormat, openLogger } from './node-logger.ts';
import { DATA, INSECURE, NODE_ID } from './options.ts';
import { Reloader } from './reload.ts';

/** Longest time for a clean stop. All steps together take far less. */
const CLOSE_MILLIS_MAX = 10_000;

/** How to run the node. */
export interface RunOptions {
  readonly data: string;
  readonly id: number;
  /** Absent: the level in the configuration. */
  readonly logLevel?: LogLevel;
  readonly logFormat: LogFormat;
  readonly insecure: boolean;
  readonly version: string;
  /** The host to listen at, instead of the one at which others reach the node. */
  readonly listen?: string;
  /** Reads the configuration again. Absent: from the file. @throws ConfigError */
  readonly read?: () => Promise<ClusterConfig>;
}

type NodeOptions = Omit<RunOptions, 'id' | 'version' | 'insecure'> & { readonly insecure?: boolean };

async function safeguardsOf({ data, id }: RunOptions, config: ClusterConfig): Promise<Safeguards> {
  const known = await readKnownMembers(nodeDirectory(data, id));
  // A joining node decides nothing before it has received the nodes and tokens of the cluster.
  const isNew = known === undefined && !config.founders.some((founder) => founder.id === id);
  return { tls: config.tls, hasTokens: isNew || hasTokens(config, known) };
}

async function configured({ data, id }: RunOptions): Promise<{ config: ClusterConfig; self: NodeAddress }> {
  const config = await readCluster(data);
  if (config === undefined) {
    throw new ConfigError(
      data,
      'holds no cluster.json; create one with `quorate init` (in a clone: `npm start`)',
    );
  }
  const self = config.nodes.find((node) => node.id === id);
  if (self !== undefined) return { config, self };
  const known = config.nodes.map((node) => node.id).join(', ');
  throw new ConfigError('<id>', `${id} is none of the nodes in ${data}/cluster.json: ${known}`);
}

/** Runs a node until it is stopped by a signal. @throws ConfigError, and errors of the database and the listeners */
export async function runNode(options: RunOptions): Promise<void> {
  const { config, self } = await configured(options);
  const { id: nodeId, logFormat: format, logLevel } = options;
  const logger = await openLogger({
    level: logLevel ?? config.logLevel ?? LOG_LEVEL_DEFAULT,
    format,
    nodeId,
  });
  const { read = async () => (await configured(options)).config } = options;
  const reloader = new Reloader({ config, read, logger, isLevelStated: logLevel !== undefined });
  process.on('SIGHUP', reloader.reload);
  const listening = options.listen === undefined ? self : listeningAt(self, options.listen);
  const exposure = exposureOf(listening, await safeguardsOf(options, config), options.insecure);
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
    // Before it takes part, there is nothing to lose.
    if (node === undefined) process.exit(0);
    setTimeout(() => {
      logger.error({ afterMillis: CLOSE_MILLIS_MAX }, 'could not stop in time');
      process.exit(1);
    }, CLOSE_MILLIS_MAX).unref();
    node.close().then(
      () => {
        logger.info('stopped');
        process.exit(0);
      },
      (error: unknown) => {
        logger.error({ err: error }, 'could not stop cleanly');
        process.exit(1);
      },
    );
  };
  process.on('SIGTERM', () => stop('SIGTERM'));
  process.on('SIGINT', () => stop('SIGINT'));
  // Started by `npm start`: end when that process ends.
  if (process.channel !== undefined) process.on('disconnect', () => stop('the starting process ended'));
  // Loading the node is half of the start-up time of a command, and only this command needs it.
  const { startNode } = await import('../node/node.ts');
  node = await startNode({
    config,
    ...(tls !== undefined && { tls }),
    nodeId: options.id,
    dataDirectory: nodeDirectory(options.data, options.id),
    version: options.version,
    ...(options.listen !== undefined && { listen: options.listen }),
    logger,
    // Exit at once: all that is queued depends on the disk that failed (promise P6).
    onFatal(error) {
      complain(`node ${options.id} stops: ${explain(error).message}`);
      process.exit(EXIT_FATAL);
    },
  });
  reloader.runs(node);
}

/** Adds `node` to the program. @param version the version of the package, which the node reports */
export function addNodeCommand(program: Command, version: string): void {
  explained(program.command('node'), {
    does: 'run one node of the cluster in a directory, until SIGTERM or Ctrl-C',
    exits: {
      0: 'it was stopped',
      1: 'it was stopped, and did not end in time or ended with an error',
      64: 'it cannot start with this configuration',
      69: 'a port is in use by another program',
      70: 'its database cannot be opened or trusted, or another process uses it',
    },
    examples: ['quorate node 1', 'quorate node 1 --data ./data --log-level warn'],
  })
    .argument(...NODE_ID)
    .option(...DATA)
    .addOption(
      new Option(
        '--log-level <level>',
        `how much it logs (default: logLevel in cluster.json, else ${LOG_LEVEL_DEFAULT})`,
      ).choices(LOG_LEVELS),
    )
    .addOption(
      new Option(
        '--log-format <format>',
        'pretty for people, json for what collects logs; auto: pretty on a terminal',
      )
        .choices(LOG_FORMATS)
        .env('QUORATE_LOG_FORMAT')
        .default('auto'),
    )
    .option(
      '--listen <host>',
      'the host to listen at, such as 0.0.0.0 (default: those in cluster.json, where others find it)',
    )
    .option(...INSECURE)
    .action(async (id: number, { insecure = false, ...options }: NodeOptions) =>
      runNode({ ...options, insecure, id, version }),
    );
}
