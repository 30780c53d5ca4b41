/** `quorate nodes`: what the command line takes, and what it asks for. */
import type { Command } from 'commander';
import { NODE_ID_MAX, type NodeAddress } from '../api/node-address.ts';
import type { LabelChange } from '../api/cluster-change.ts';
import { labelsOf } from '../api/node-labels.ts';
import { ClusterCommandError } from './ask-node.ts';
import { CA } from './ca-option.ts';
import { changeNodes, type NodesCommandInit } from './nodes-command.ts';
import {
  addressOption,
  HOST,
  integerFrom,
  integerOption,
  labelOption,
  JSON_OPTION,
  nodeOption,
  VIA_DEFAULT,
  ZONE,
} from './options.ts';

const idOption = integerFrom(1, NODE_ID_MAX);
const VIA = ['--via <host:port>', 'a node of the cluster'] as const;
const TIMEOUT = ['--timeout <ms>', 'how long to wait until all partitions have moved'] as const;
const TIMEOUT_MILLIS = 600_000;
interface NodesOptions {
  readonly via: string;
  readonly timeout: number;
  readonly json?: true;
}

/** False: it is taken away. */
interface LabelOptions {
  readonly zone?: string | boolean;
  readonly host?: string | boolean;
}

export function addNodesCommands(program: Command, print: (line: string) => void): void {
  const change = async (
    { via, timeout, json }: NodesOptions,
    wanted: NodesCommandInit['change'],
  ): Promise<void> =>
    changeNodes({ via, change: wanted, timeoutMillis: timeout, ...(json && { json }), print });
  const nodes = program
    .command('nodes')
    .description('add, remove, replace or label a node of a running cluster, on the machine of a node');
  nodes
    .command('add')
    .description(
      'add a node that was prepared with `npx quorate join`; its share of the partitions moves there',
    )
    .requiredOption('--id <n>', 'its id', idOption)
    .requiredOption('--http <host:port>', 'where it answers HTTP', addressOption)
    .requiredOption('--peer <host:port>', 'where the other nodes reach it', addressOption)
    .option(...ZONE, labelOption)
    .option(...HOST, labelOption)
    .option('--replace <id>', 'the node that leaves in the same change', idOption)
    .option(...VIA, nodeOption, VIA_DEFAULT)
    .option(...CA)
    .option(...TIMEOUT, integerOption, TIMEOUT_MILLIS)
    .option(...JSON_OPTION)
    .action(
      async ({ id, http, peer, replace, ...options }: NodesOptions & NodeAddress & { replace?: number }) =>
        change(options, {
          add: { id, http, peer, ...labelsOf(options) },
          ...(replace !== undefined && { remove: replace }),
        }),
    );
  nodes
    .command('remove')
    .description('remove a node; stop it when this command says that all partitions have moved')
    .argument('<id>', 'which node leaves for good', idOption)
    .option(...VIA, nodeOption, VIA_DEFAULT)
    .option(...CA)
    .option(...TIMEOUT, integerOption, TIMEOUT_MILLIS)
    .option(...JSON_OPTION)
    .action(async (id: number, options: NodesOptions) => change(options, { remove: id }));
  nodes
    .command('label')
    .description(
      'say otherwise where a node stands; what is not named stays, and copies move as far as that asks for it',
    )
    .argument('<id>', 'which node', idOption)
    .option(...ZONE, labelOption)
    .option(...HOST, labelOption)
    .option('--no-zone', 'take its zone away')
    .option('--no-host', 'take its host away')
    .option(...VIA, nodeOption, VIA_DEFAULT)
    .option(...CA)
    .option(...TIMEOUT, integerOption, TIMEOUT_MILLIS)
    .option(...JSON_OPTION)
    .action(async (id: number, options: NodesOptions & LabelOptions) =>
      change(options, { label: labelChange(id, options) }),
    );
}

/** Undefined: it stays. */
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
