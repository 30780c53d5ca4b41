/**
 * `quorate init` and `quorate join`: their options, and what they print. Both create databases of nodes that do not run
 * yet.
 */
import type { Command } from 'commander';
import { type HostPort, labelsOf } from '../api/node-address.ts';
import { createCluster, readCluster } from '../config/cluster-directory.ts';
import { ConfigError, NODES_MAX } from '../config/config.ts';
import { drawToken } from '../config/token-secret.ts';
import { explained } from './command-line.ts';
import { joinCluster } from './join-cluster.ts';
import { type JoiningNode, listenersText, withListeners } from './join-listeners.ts';
import { keepApart, makeAllCertificates } from './make-certificates.ts';
import { dataText, type NewClusterOptions, newClusterConfig, withNewClusterOptions } from './new-cluster.ts';
import { addressOption, DATA, HOST, HTTP, integerFrom, JSON_OPTION, NODE_ID, PEER, ZONE } from './options.ts';

/** Adds `init` to the program. */
export function addInitCommand(program: Command, print: (line: string) => void): void {
  withNewClusterOptions(
    explained(program.command('init'), {
      does: 'create the databases and cluster.json of a new cluster on this machine',
      examples: ['quorate init', 'quorate init --nodes 1 --limit 100 --window 60000 --data ./small'],
    }),
    { words: `1 to ${NODES_MAX}`, parse: integerFrom(1, NODES_MAX) },
  )
    .option(
      '--admin-token',
      'require tokens from the start: write a token of role admin into cluster.json, and print it once',
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
      for (const { id } of config.nodes) print(`  npx quorate node ${id}${dataText(options.data)}`);
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

/** Adds `join` to the program. */
export function addJoinCommand(program: Command, print: (line: string) => void): void {
  explained(program.command('join'), {
    does: 'prepare the database of a node with a new id, which joins a running cluster: run it, then `quorate nodes add`',
    examples: ['quorate join 4 --http 10.0.0.4:8104 --peer 10.0.0.4:9104'],
  })
    .argument(...NODE_ID)
    .requiredOption(...HTTP)
    .requiredOption(...PEER)
    .option(
      '--resp <host:port>',
      'where the node speaks the Redis protocol (default: as the other nodes do)',
      addressOption,
    )
    .option('--no-resp', 'without the Redis protocol')
    .option(
      '--grpc <host:port>',
      "where the node speaks Envoy's rate limit protocol (default: as the other nodes do)",
      addressOption,
    )
    .option('--no-grpc', "without Envoy's rate limit protocol")
    .option(...ZONE)
    .option(...HOST)
    .option(...DATA)
    .option(...JSON_OPTION)
    .action(async (id: number, { data, json, http, peer, resp, grpc, ...labels }: JoinOptions) => {
      // Commander sets an option that can be negated to true if it is not given.
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
