/** `quorate nodes`: what the command line takes, and what it asks for. */
import type { Command } from 'commander';
import { NODE_ID_MAX, type NodeAddress } from '../api/node-address.ts';
import type { NodeChange } from '../api/node-change.ts';
import { CA } from './ca-option.ts';
import { changeNodes } from './nodes-command.ts';
import { addressOption, integerFrom, integerOption, JSON_OPTION, urlOption, VIA_DEFAULT } from './options.ts';

const idOption = integerFrom(1, NODE_ID_MAX);
const VIA = ['--via <url>', 'a node of the cluster'] as const;
const TIMEOUT = ['--timeout <ms>', 'how long to wait until all partitions have moved'] as const;
const TIMEOUT_MILLIS = 600_000;
interface NodesOptions {
  readonly via: string;
  readonly timeout: number;
  readonly json?: true;
}

export function addNodesCommands(program: Command, print: (line: string) => void): void {
  const change = async ({ via, timeout, json }: NodesOptions, wanted: NodeChange): Promise<void> =>
    changeNodes({ via, change: wanted, timeoutMillis: timeout, ...(json && { json }), print });
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
    .option(...JSON_OPTION)
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
    .option(...JSON_OPTION)
    .action(async (id: number, options: NodesOptions) => change(options, { remove: id }));
}
