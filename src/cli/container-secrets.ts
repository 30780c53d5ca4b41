/**
 * `quorate container secrets`: creates what the containers of a secured cluster have in common: the cluster id, the
 * certificates and the first tokens. Run again, it keeps the id, the CA and the tokens, and issues new certificates. It
 * starts and asks no node.
 */
import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Command, InvalidArgumentError } from 'commander';
import { readTextIfAny, writeTextSynced } from '../../storage/files.ts';
import type { TokenEntry } from '../api/token.ts';
import { ConfigError, NODES_MAX } from '../config/config.ts';
import { drawToken } from '../config/token-secret.ts';
import { authorityFiles, nodeFiles } from '../tls/certificate-files.ts';
import { CA_KEY, DAYS, hostOption } from './certs-commands.ts';
import { explained } from './command-line.ts';
import { nodeIdsIn } from './container-settings.ts';
import { issueFor, keepApart, makeAuthorityFor } from './make-certificates.ts';
import { directoryOption, integerFrom, JSON_OPTION } from './options.ts';

const MOUNTED = 'certs';
const TOKENS = 'tokens';
const SETTINGS = 'settings.json';
const ROLES = ['admin', 'read'] as const;

/** The options of `quorate container secrets`. */
export interface ContainerSecretsOptions {
  readonly out: string;
  /** The host name of a container, with `{ordinal}` in it. */
  readonly pattern: string;
  /** Names by which clients reach any of the containers. */
  readonly alsoHost: readonly string[];
  readonly nodes: number;
  /** In the form of `QUORATE_NODE_IDS`. */
  readonly nodeIds: string;
  /** The directory at which the containers mount the files. */
  readonly mountedAt: string;
  readonly days: number;
  readonly caKey?: string;
}

/** The created files. */
export interface ContainerSecrets {
  readonly clusterId: string;
  /** The directory that every container mounts. */
  readonly mounted: string;
  readonly tokens: string;
  readonly caKey: string;
  readonly nodes: readonly number[];
  /** When the certificates expire. */
  readonly until: Date;
}

/** Adds `secrets` to `quorate container`. */
export function addContainerSecretsCommand(container: Command, print: (line: string) => void): void {
  explained(container.command('secrets'), {
    does: 'make the cluster id, the certificates and the first tokens of a cluster of containers',
    examples: ['quorate container secrets --pattern quorate-{ordinal}.quorate-nodes --nodes 3'],
  })
    .requiredOption(
      '--pattern <hostname>',
      'where others reach a container, with {ordinal} in it, as QUORATE_HOST',
      patternOption,
    )
    .option(
      '--also-host <name>',
      'a name by which clients reach any of them; may be repeated',
      hostOption,
      [],
    )
    .option('--nodes <n>', `number of nodes, 1 to ${NODES_MAX}`, integerFrom(1, NODES_MAX), 3)
    .option('--node-ids <list>', 'as QUORATE_NODE_IDS, such as 1:1001', '')
    .option('--out <dir>', 'a directory of its own', directoryOption, './secrets')
    .option('--mounted-at <dir>', 'where the containers have the certificates mounted', '/secrets')
    .option(...DAYS)
    .option(...CA_KEY)
    .option(...JSON_OPTION)
    .action(async ({ json, ...options }: ContainerSecretsOptions & { json?: true }) => {
      const made = await makeContainerSecrets(options);
      if (json === true) return print(JSON.stringify({ ...made, until: made.until.toISOString() }));
      print(`certificates of node ${made.nodes.join(', ')}, valid until ${made.until.toISOString()}`);
      print(
        `mount ${made.mounted} in all containers, at ${options.mountedAt}: it has the cluster id and the digests of the tokens`,
      );
      print(`${made.tokens} has a token of role admin and one of role read: give them only to operators`);
      if (options.caKey === undefined) print(keepApart(options.out));
    });
}

/** @throws ConfigError if `out` holds other files, or the key of the CA is elsewhere */
export async function makeContainerSecrets(options: ContainerSecretsOptions): Promise<ContainerSecrets> {
  const { out, pattern, alsoHost, nodes, mountedAt, days, caKey } = options;
  const ids = nodeIdsIn(options.nodeIds);
  const mounted = join(out, MOUNTED);
  await mkdir(mounted, { recursive: true, mode: 0o700 });
  const clusterId = (await clusterIdIn(mounted)) ?? (await beginSettings(out, mountedAt));
  const { cert } = authorityFiles(out);
  if (!existsSync(cert)) {
    // The CA is gone. A new one would not help: nodes trust only certificates of the first CA.
    if (existsSync(nodeFiles(out, 1).cert))
      throw new ConfigError(cert, 'is gone, and nodes have certificates of that CA: bring it back');
    await makeAuthorityFor(out, clusterId);
  }
  const made: number[] = [];
  let until = new Date(0);
  for (let ordinal = 0; ordinal < nodes; ordinal += 1) {
    const id = ids.get(ordinal) ?? ordinal + 1;
    const hosts = [pattern.replaceAll('{ordinal}', String(ordinal)), ...alsoHost, 'localhost'];
    const issued = await issueFor(out, clusterId, { id, hosts, days, ...(caKey !== undefined && { caKey }) });
    made.push(id);
    ({ until } = issued);
  }
  const key = caKey ?? authorityFiles(out).key;
  return { clusterId, mounted, tokens: join(out, TOKENS), caKey: key, nodes: made, until };
}

/** Returns undefined if there are no settings yet. */
async function clusterIdIn(mounted: string): Promise<string | undefined> {
  const text = await readTextIfAny(mounted, SETTINGS);
  if (text === undefined) return undefined;
  const path = join(mounted, SETTINGS);
  try {
    const { clusterId } = JSON.parse(text) as { readonly clusterId?: unknown };
    if (typeof clusterId === 'string' && clusterId !== '') return clusterId;
  } catch {
    // Reported below.
  }
  throw new ConfigError(
    path,
    'must have a clusterId, as `quorate container secrets` writes it: use another directory',
  );
}

/**
 * Writes the tokens before the settings. Settings that name a token which was never written would lock everybody out
 * for good.
 */
async function beginSettings(out: string, mountedAt: string): Promise<string> {
  const clusterId = randomUUID();
  const tokens: TokenEntry[] = [];
  await mkdir(join(out, TOKENS), { recursive: true, mode: 0o700 });
  for (const role of ROLES) {
    const { token, entry } = drawToken({ role, name: `first-${role}` }, Date.now());
    await writeFile(join(out, TOKENS, role), token, { mode: 0o600, flush: true });
    tokens.push(entry);
  }
  const tls = {
    ca: `${mountedAt}/ca.crt`,
    cert: `${mountedAt}/node-{id}.crt`,
    key: `${mountedAt}/node-{id}.key`,
    listeners: true,
  };
  await writeTextSynced(
    join(out, MOUNTED),
    SETTINGS,
    `${JSON.stringify({ clusterId, tls, tokens }, null, 2)}\n`,
  );
  return clusterId;
}

function patternOption(text: string): string {
  if (!text.includes('{ordinal}'))
    throw new InvalidArgumentError(
      'expected a host name with {ordinal} in it, such as quorate-{ordinal}.quorate-nodes',
    );
  // With an ordinal in place, the pattern must be a valid host name.
  hostOption(text.replaceAll('{ordinal}', '0'), []);
  return text;
}
