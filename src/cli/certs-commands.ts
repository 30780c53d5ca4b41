/** `quorate certs`: what it takes and prints. */
import { isIP } from 'node:net';
import { type Command, InvalidArgumentError } from 'commander';
import { NODE_ID_MAX } from '../api/node-address.ts';
import {
  type IssueOptions,
  keepApart,
  makeAuthority,
  makeNodeCertificate,
  NODE_DAYS_DEFAULT,
  NODE_DAYS_MAX,
} from './make-certificates.ts';
import { directoryOption, integerFrom, JSON_OPTION } from './options.ts';

const DNS_NAME = /^(?:\*\.)?[a-z\d](?:[a-z\d-]{0,62}\.?)+$/i;
const DNS_NAME_CHARACTERS_MAX = 253;
const HOSTS_MAX = 32;
const DATA = [
  '--data <dir>',
  "directory with the cluster's cluster.json",
  directoryOption,
  './data',
] as const;

interface IssueCommand extends Omit<IssueOptions, 'hosts'> {
  readonly host: readonly string[];
  readonly json?: true;
}

/** A name or an address; collects those of before. */
export function hostOption(text: string, before: readonly string[]): readonly string[] {
  const isName = text.length <= DNS_NAME_CHARACTERS_MAX && DNS_NAME.test(text);
  if (isIP(text) === 0 && !isName)
    throw new InvalidArgumentError('expected a host name or an address, without a port');
  if (before.length >= HOSTS_MAX)
    throw new InvalidArgumentError(`expected at most ${HOSTS_MAX} names and addresses`);
  return [...before, text];
}

export function addCertsCommands(program: Command): void {
  const certs = program
    .command('certs')
    .description('make the certificates by which nodes and clients know the nodes of a cluster');
  certs
    .command('init')
    .description(
      'make the CA of the cluster, once: certs/ca.crt, and ca/ca.key, which is to be moved to where no node runs',
    )
    .option(...DATA)
    .option(...JSON_OPTION)
    .action(async ({ data, json }: { data: string; json?: true }) => {
      const { cert, key } = await makeAuthority(data);
      if (json === true) return console.log(JSON.stringify({ cert, key }));
      console.log(`made the CA of the cluster: ${cert}`);
      console.log(keepApart(data));
    });
  certs
    .command('issue')
    .description("make or renew a node's certificate and key: certs/node-<id>.crt and certs/node-<id>.key")
    .option(...DATA)
    .requiredOption('--id <n>', 'which node it is for', integerFrom(1, NODE_ID_MAX))
    .option(
      '--host <name>',
      'a name or address by which clients reach it; may be repeated (default: those in cluster.json)',
      hostOption,
      [],
    )
    .option('--days <n>', 'how long it is valid', integerFrom(1, NODE_DAYS_MAX), NODE_DAYS_DEFAULT)
    .option('--ca-key <file>', 'the key of the CA (default: ca/ca.key in the directory)')
    .option(...JSON_OPTION)
    .action(async ({ host, json, ...options }: IssueCommand) => {
      const { files, hosts, until } = await makeNodeCertificate({ ...options, hosts: host });
      if (json === true) return console.log(JSON.stringify({ ...files, hosts, until: until.toISOString() }));
      const at =
        hosts.length === 0 ? 'for no host: clients that check it need --host' : `for ${hosts.join(', ')}`;
      console.log(`made ${files.cert} and ${files.key}, ${at}, valid until ${until.toISOString()}`);
    });
}
