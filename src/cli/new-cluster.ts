/**
 * The options of a new local cluster, shared by `quorate init` and `npm start`, and the configuration that follows from
 * them. It creates nothing.
 */
import type { Command } from 'commander';
import { LOCAL_DEFAULTS, localConfig, PARTITIONS_PER_NODE } from '../config/cluster-directory.ts';
import { type ClusterConfig, PARTITIONS_MAX } from '../config/config.ts';
import { LIMIT_MAX, WINDOW_MILLIS_MAX } from '../api/rule.ts';
import { OWN_TLS_SETTINGS } from '../tls/certificate-files.ts';
import { BASE_PORT, DATA, DATA_DEFAULT, integerFrom, TLS } from './options.ts';

/** Options as given. Absent ones have defaults. */
export interface NewClusterOptions {
  readonly data: string;
  readonly nodes?: number;
  readonly partitions?: number;
  readonly limit?: number;
  readonly window?: number;
  readonly basePort?: number;
  /** Create certificates for all nodes. */
  readonly tls?: boolean;
}

/**
 * Adds the options to a command.
 *
 * @param nodes the allowed numbers of nodes, in words and as a parser
 */
export function withNewClusterOptions(
  command: Command,
  nodes: { readonly words: string; readonly parse: (text: string) => number },
): Command {
  const { nodes: nodesDefault, limit, windowMillis } = LOCAL_DEFAULTS;
  return command
    .option(...DATA)
    .option('--nodes <n>', `number of nodes, ${nodes.words} (default: ${nodesDefault})`, nodes.parse)
    .option(
      '--partitions <n>',
      `number of partitions, fixed once created (default: ${PARTITIONS_PER_NODE} for each node)`,
      integerFrom(1, PARTITIONS_MAX),
    )
    .option('--limit <n>', `requests of a user in a window (default: ${limit})`, integerFrom(0, LIMIT_MAX))
    .option(
      '--window <ms>',
      `the window of a user, in milliseconds (default: ${windowMillis})`,
      integerFrom(1, WINDOW_MILLIS_MAX),
    )
    .option(...BASE_PORT)
    .option(...TLS);
}

/** The `--data` option to print in a command line, or nothing for the default. */
export function dataText(data: string): string {
  return data === DATA_DEFAULT ? '' : ` --data ${data}`;
}

/** Returns the configuration of a new cluster. @throws ConfigError */
export function newClusterConfig(options: NewClusterOptions): ClusterConfig {
  const config = localConfig({
    nodes: options.nodes ?? LOCAL_DEFAULTS.nodes,
    ...(options.partitions !== undefined && { partitions: options.partitions }),
    limit: options.limit ?? LOCAL_DEFAULTS.limit,
    windowMillis: options.window ?? LOCAL_DEFAULTS.windowMillis,
    basePort: options.basePort ?? LOCAL_DEFAULTS.basePort,
  });
  return options.tls === true ? { ...config, tls: OWN_TLS_SETTINGS } : config;
}
