/** `quorate certs`: its options and its output. */
import { isIP } from 'node:net';
import { type Command, InvalidArgumentError } from 'commander';
import { explained } from './command-line.ts';
import {
  type IssueOptions,
  keepApart,
  makeAuthority,
  makeNodeCertificate,
  NODE_DAYS_DEFAULT,
  NODE_DAYS_MAX,
} from './make-certificates.ts';
import { DATA, integerFrom, JSON_OPTION, NODE_ID } from './options.ts';

const DNS_NAME = /^(?:\*\.)?[a-z\d](?:[a-z\d-]{0,62}\.?)+$/i;
const DNS_NAME_CHARACTERS_MAX = 253;
const HOSTS_MAX = 32;

interface IssueCommand extends Omit<IssueOptions, 'hosts' | 'id'> {
  readonly hostname: readonly string[];
  readonly json?: true;
}

/** Parses a host name or an address, and adds it to those given before. */
export function hostOption(text: string, before: readonly string[]): readonly string[] {
  const isName = text.length <= DNS_NAME_CHARACTERS_MAX && DNS_NAME.test(text);
  if (isIP(text) === 0 && !isName)
    throw new InvalidArgumentError('expected a host name or an address, without a port');
  if (before.length >= HOSTS_MAX)
    throw new InvalidArgumentError(`expected at most ${HOSTS_MAX} names and addresses`);
  return [...before, text];
}

/** The option `--days`. */
export const DAYS = [
  '--days <n>',
  `how long certificates are valid, 1 to ${NODE_DAYS_MAX} days`,
  integerFrom(1, NODE_DAYS_MAX),
  NODE_DAYS_DEFAULT,
] as const;
/** The option `--ca-key`. */
export const CA_KEY = ['--ca-key <file>', 'the key of the CA (default: ca/ca.key in the directory)'] as const;

/** Adds `certs` to the program. */
export function addCertsCommands(program: Command): void {
  const certs = explained(program.command('certs'), {
    does: 'make the certificates with which nodes prove who they are to each other and to clients',
    examples: ['quorate certs init', 'quorate certs issue 1'],
  });
  explained(certs.command('init'), {
    does: 'make the CA of the cluster, once: certs/ca.crt, and ca/ca.key; move the key to a machine without a node',
    examples: ['quorate certs init'],
  })
    .option(...DATA)
    .option(...JSON_OPTION)
    .action(async ({ data, json }: { data: string; json?: true }) => {
      const { cert, key } = await makeAuthority(data);
      if (json === true) return console.log(JSON.stringify({ cert, key }));
      console.log(`made the CA of the cluster: ${cert}`);
      console.log(keepApart(data));
    });
  explained(certs.command('issue'), {
    does: "make or renew a node's certificate and key: certs/node-<id>.crt and certs/node-<id>.key",
    examples: ['quorate certs issue 4 --hostname 10.0.0.4 --hostname limits.internal'],
  })
    .argument(...NODE_ID)
    .option(...DATA)
    .option(
      '--hostname <name>',
      'one more name or address by which clients reach the node, besides those in cluster.json; may be repeated',
      hostOption,
      [],
    )
    .option(...DAYS)
    .option(...CA_KEY)
    .option(...JSON_OPTION)
    .action(async (id: number, { hostname, json, ...options }: IssueCommand) => {
      const { files, hosts, until } = await makeNodeCertificate({ ...options, id, hosts: hostname });
      if (json === true) return console.log(JSON.stringify({ ...files, hosts, until: until.toISOString() }));
      const at =
        hosts.length === 0
          ? 'for no host: clients that check the host need --hostname'
          : `for ${hosts.join(', ')}`;
      console.log(`made ${files.cert} and ${files.key}, ${at}, valid until ${until.toISOString()}`);
    });
}
