/** `quorate init` and `quorate join`: what they take, and the databases that they make for nodes that do not run yet. */
import type { Command } from 'commander';
import { type HostPort, NODE_ID_MAX } from '../api/node-address.ts';
import { labelsOf } from '../api/node-labels.ts';
import { createCluster, readCluster } from '../config/cluster-directory.ts';
import { ConfigError, NODES_MAX } from '../config/config.ts';
import { drawToken } from '../config/token-secret.ts';
import { joinCluster } from './join-cluster.ts';
import { type JoiningNode, listenersText, withListeners } from './join-listeners.ts';
import { keepApart, makeAllCertificates } from './make-certificates.ts';
import { type NewClusterOptions, newClusterConfig, withNewClusterOptions } from './new-cluster.ts';
import {
  addressOption,
  directoryOption,
  HOST,
  integerFrom,
  JSON_OPTION,
  labelOption,
  ZONE,
} from './options.ts';

export function addInitCommand(program: Command, print: (line: string) => void): void {
  withNewClusterOptions(
    program.command('init').description('create the databases and cluster.json of a new local cluster'),
    { words: `1 to ${NODES_MAX}`, parse: integerFrom(1, NODES_MAX) },
  )
    .option(
      '--admin-token',
      'close the cluster from its first day: write a token of role admin into cluster.json, and print it once',
    )
    .option(...JSON_OPTION)
    .action(async (options: NewClusterOptions & { adminToken?: true; json?: true }) => {
      if ((await readCluster(options.data)) !== undefined) {
        throw new ConfigError(options.data, 'holds a cluster already; use another directory');
      }
      const admin =
        options.adminToken === true ? drawToken({ role: 'admin', name: 'init' }, Date.now()) : undefined;
      const config = { ...newClusterConfig(options), ...(admin && { tokens: [admin.entry] }) };
      await createCluster(options.data, config);
      if (options.tls === true) await makeAllCertificates(options.data, config);
      if (options.json === true) {
        const nodes = config.nodes.map(({ id }) => id);
        const token = admin && { token: admin.token };
        print(JSON.stringify({ clusterId: config.clusterId, data: options.data, nodes, ...token }));
        return;
      }
      print(`created a cluster of ${config.nodes.length} nodes in ${options.data}; run each of them with`);
      for (const { id } of config.nodes) print(`  npx quorate node --id ${id} --data ${options.data}`);
      if (options.tls === true) print(keepApart(options.data));
      if (admin !== undefined) {
        print(`token ${admin.entry.id} of role admin; keep it now, it is not shown again:`);
        print(admin.token);
      }
    });
}

type JoinOptions = Omit<JoiningNode, 'resp' | 'grpc'> & {
  readonly data: string;
  readonly json?: true;
  readonly resp?: HostPort | boolean;
  readonly grpc?: HostPort | boolean;
};

export function addJoinCommand(program: Command, print: (line: string) => void): void {
  program
    .command('join')
    .description(
      'prepare the database of a node that joins a running cluster; run it, then `npx quorate nodes add`',
    )
    .requiredOption('--id <n>', 'its id, which no node ever had', integerFrom(1, NODE_ID_MAX))
    .requiredOption('--http <host:port>', 'where it will answer HTTP', addressOption)
    .requiredOption('--peer <host:port>', 'where the other nodes reach it', addressOption)
    .option(
      '--resp <host:port>',
      'where it will speak the Redis protocol (default: as the other nodes do)',
      addressOption,
    )
    .option('--no-resp', 'without the Redis protocol')
    .option(
      '--grpc <host:port>',
      "where it will speak Envoy's rate limit protocol (default: likewise)",
      addressOption,
    )
    .option('--no-grpc', "without Envoy's rate limit protocol")
    .option(...ZONE, labelOption)
    .option(...HOST, labelOption)
    .option('--data <dir>', "directory with a copy of the cluster's cluster.json", directoryOption, './data')
    .option(...JSON_OPTION)
    .action(async ({ data, json, id, http, peer, resp, grpc, ...labels }: JoinOptions) => {
      // Of an option that can be negated, true is that it was not given.
      const given = {
        ...(resp !== true && resp !== undefined && { resp }),
        ...(grpc !== true && grpc !== undefined && { grpc }),
      };
      const config = await readCluster(data);
      const node = withListeners({ id, http, peer, ...given, ...labelsOf(labels) }, config?.nodes ?? []);
      const said = [...(await joinCluster(data, node)), `it will listen: ${listenersText(node)}`];
      if (json === true) print(JSON.stringify({ node: id, data, said }));
      else for (const line of said) print(line);
    });
}
