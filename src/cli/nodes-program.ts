/** The options of `quorate nodes`, and the changes that it requests. */
import type { Command } from 'commander';
import { type NodeAddress, labelsOf } from '../api/node-address.ts';
import type { LabelChange } from '../api/cluster-change.ts';
import { ClusterCommandError } from './ask-node.ts';
import { type ClusterOptions, nodeOf, withCluster } from './asked-cluster.ts';
import { explained } from './command-line.ts';
import { changeNodes, type NodesCommandInit } from './nodes-command.ts';
import { HOST, HTTP, JSON_OPTION, NODE_ID, PEER, timeoutOption, ZONE } from './options.ts';

/** Default time to wait until all partitions have moved. */
const TIMEOUT_MILLIS = 600_000;
const EXITS = { 0: 'all partitions have moved', 75: 'not finished within --timeout; the cluster continues' };

interface NodesOptions extends ClusterOptions {
  readonly timeout: number;
  readonly json?: true;
}

/** False: remove the label. */
interface LabelOptions {
  readonly zone?: string | boolean;
  readonly host?: string | boolean;
}

/** Adds `nodes` to the program. */
export function addNodesCommands(program: Command, print: (line: string) => void): void {
  const change = async (
    { timeout: timeoutMillis, json, ...options }: NodesOptions,
    wanted: NodesCommandInit['change'],
  ): Promise<void> => {
    const node = await nodeOf(options);
    await changeNodes({ node, change: wanted, timeoutMillis, ...(json && { json }), print });
  };
  const nodes = explained(program.command('nodes'), {
    does: 'add, remove, replace or label a node of a running cluster',
    examples: ['quorate nodes remove 3'],
  });
  withCluster(
    explained(nodes.command('add'), {
      does: 'add a node that was prepared with `quorate join`, and move its part of the partitions there',
      exits: EXITS,
      examples: [
        'quorate nodes add 4 --http 10.0.0.4:8104 --peer 10.0.0.4:9104',
        'quorate nodes add 5 --replace 2 --http 10.0.0.5:8105 --peer 10.0.0.5:9105',
      ],
    }),
  )
    .argument(...NODE_ID)
    .requiredOption(...HTTP)
    .requiredOption(...PEER)
    .option(...ZONE)
    .option(...HOST)
    .option('--replace <id>', 'the id of a node that leaves in the same change', NODE_ID[2])
    .option(...timeoutOption, TIMEOUT_MILLIS)
    .option(...JSON_OPTION)
    .action(
      async (
        id: number,
        { http, peer, replace, ...options }: NodesOptions & Omit<NodeAddress, 'id'> & { replace?: number },
      ) =>
        change(options, {
          add: { id, http, peer, ...labelsOf(options) },
          ...(replace !== undefined && { remove: replace }),
        }),
    );
  withCluster(
    explained(nodes.command('remove'), {
      does: 'remove a node for good, and wait until all its partitions have moved and it can be stopped',
      exits: EXITS,
      examples: ['quorate nodes remove 3'],
    }),
  )
    .argument(...NODE_ID)
    .option(...timeoutOption, TIMEOUT_MILLIS)
    .option(...JSON_OPTION)
    .action(async (id: number, options: NodesOptions) => change(options, { remove: id }));
  withCluster(
    explained(nodes.command('label'), {
      does: 'change the zone or host label of a node, and move copies if the new labels require it',
      exits: EXITS,
      examples: ['quorate nodes label 1 --zone eu-1a --host rack7-m1', 'quorate nodes label 1 --no-zone'],
    }),
  )
    .argument(...NODE_ID)
    .option(...ZONE)
    .option(...HOST)
    .option('--no-zone', 'remove the zone')
    .option('--no-host', 'remove the host')
    .option(...timeoutOption, TIMEOUT_MILLIS)
    .option(...JSON_OPTION)
    .action(async (id: number, options: NodesOptions & LabelOptions) =>
      change(options, { label: labelChange(id, options) }),
    );
}

/** Undefined: keep the label. Null: remove it. */
function wanted(label: string | boolean | undefined): string | null | undefined {
  if (label === false) return null;
  return typeof label === 'string' ? label : undefined;
}

/** @throws ClusterCommandError if no label is given */
function labelChange(node: number, { zone, host }: LabelOptions): LabelChange {
  const [zoneWanted, hostWanted] = [wanted(zone), wanted(host)];
  if (zoneWanted === undefined && hostWanted === undefined)
    throw new ClusterCommandError('give --zone, --host, --no-zone or --no-host');
  return {
    node,
    ...(zoneWanted !== undefined && { zone: zoneWanted }),
    ...(hostWanted !== undefined && { host: hostWanted }),
  };
}
