/**
 * The `quorate doctor` checks of one node of this machine: database, disk, ports, certificates and listeners. It only
 * reads.
 */
import { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { readFile, realpath } from 'node:fs/promises';
import { createServer } from 'node:net';
import { examineStore } from '../../storage/examine.ts';
import { freeBytes } from '../../storage/free-space.ts';
import { addressesOf, addressText, type HostPort, type NodeAddress } from '../api/node-address.ts';
import { nodeDirectory } from '../config/cluster-directory.ts';
import { type ClusterConfig, ConfigError } from '../config/config.ts';
import { hasTokens } from '../node/access.ts';
import { readKnownMembers } from '../node/member-cache.ts';
import { hostsOf } from './make-certificates.ts';
import { readCredentials, resolvePath } from '../tls/credentials.ts';
import { exposureOf } from '../tls/exposure.ts';
import { askNode, FOREIGN_CERTIFICATE, messageOf } from './ask-node.ts';
import { listenerUrl } from './node-fetch.ts';
import { fail, type Finding, ok, warn } from './finding.ts';
import { discardsAtOnce, type Mount, mountOf } from './mounts.ts';
import { bytesText } from './text-table.ts';

/** The node to check. */
export interface ExaminedNode {
  readonly findings: readonly Finding[];
  /** A process has the database of the node open. */
  readonly isRunning: boolean;
}

const DAY_MILLIS = 86_400_000;
const CERTIFICATE_DAYS_MIN = 30;
/** Warn if less than this many times the floor is free. */
const FREE_FLOORS_MIN = 4;
const ANSWER_MILLIS_MAX = 2_000;

/** Runs all checks of one node. */
export async function examineNode(
  directory: string,
  config: ClusterConfig,
  node: NodeAddress,
): Promise<ExaminedNode> {
  const database = nodeDirectory(directory, node.id);
  const store = await examineStore(database);
  const isRunning = store.kind === 'inUse';
  const findings = [
    storeFinding(node.id, store),
    ...(await removalFindings(node.id, database)),
    ...(store.kind === 'missing' ? [] : await diskFindings(node.id, database, config.freeFloorBytes)),
    ...(await portFindings(config, node, isRunning)),
    ...(await certificateFindings(directory, config, node)),
    await exposureFinding(database, config, node),
  ];
  return { findings, isRunning };
}

function storeFinding(id: number, store: Awaited<ReturnType<typeof examineStore>>): Finding {
  const check = `node ${id}: database`;
  switch (store.kind) {
    case 'inUse':
      return ok(check, 'open in a process, which checked it when it started');
    case 'sound':
      return ok(
        check,
        'the node does not run; its files are complete, and it checks each record when it starts',
      );
    case 'damaged':
      return fail(
        check,
        store.problem,
        `replace the node by one with a new id: \`quorate nodes add --replace ${id}\``,
      );
    case 'missing':
      return fail(
        check,
        store.problem,
        'if its disk was lost, replace the node by one with a new id; if it is new, prepare it with `quorate join`',
      );
  }
}

async function removalFindings(id: number, database: string): Promise<Finding[]> {
  const known = await readKnownMembers(database);
  if (known?.isRemoved !== true) return [];
  const action = 'do not start it again; you can delete its directory';
  return [warn(`node ${id}: membership`, 'it was removed from the cluster', action)];
}

async function diskFindings(id: number, database: string, floorBytes: number): Promise<Finding[]> {
  return [await roomFinding(id, database, floorBytes), ...mountFindings(id, await mountAt(database))];
}

/** Returns undefined on systems without /proc/self/mountinfo. */
async function mountAt(directory: string): Promise<Mount | undefined> {
  const mountinfo = await readFile('/proc/self/mountinfo', 'utf8').catch(() => '');
  return mountOf(await realpath(directory), mountinfo);
}

/**
 * Checks for the mount option `discard`. LevelDB deletes files of about 32 MB while it runs, and with `discard` one
 * deletion stalled all synced writes of a machine for 150 to 330 ms.
 */
export function mountFindings(id: number, mount: Mount | undefined): Finding[] {
  if (mount === undefined) return [];
  const check = `node ${id}: mount`;
  const { point, type, source } = mount;
  const where = `${point} (${type} on ${source})`;
  if (!discardsAtOnce(mount)) return [ok(check, `${where} does not discard at each deletion`)];
  return [
    warn(
      check,
      `${where} is mounted with discard, which may stall writes`,
      `\`mount -o remount,nodiscard ${point}\`, the same in /etc/fstab, and fstrim.timer instead`,
    ),
  ];
}

async function roomFinding(id: number, database: string, floorBytes: number): Promise<Finding> {
  const check = `node ${id}: disk`;
  const free = await freeBytes(database);
  const found = `${bytesText(free)} free; the floor is ${bytesText(floorBytes)}`;
  const action = 'make room: below the floor the node leads nothing that others can lead';
  if (free < floorBytes) return fail(check, found, action);
  return free < FREE_FLOORS_MIN * floorBytes ? warn(check, found, action) : ok(check, found);
}

async function portFindings(
  config: ClusterConfig,
  node: NodeAddress,
  isRunning: boolean,
): Promise<Finding[]> {
  const { id } = node;
  const findings: Finding[] = [];
  for (const [name, address] of Object.entries(addressesOf(node))) {
    const check = `node ${id}: ${name} port`;
    const where = addressText(address);
    const problem = address.port === 0 ? undefined : await listenProblem(address);
    if (problem === undefined)
      findings.push(
        isRunning && address.port !== 0
          ? warn(
              check,
              `${where} is free, although the node runs`,
              'was cluster.json changed? restart the node',
            )
          : ok(check, 'free'),
      );
    else if (problem !== 'EADDRINUSE')
      findings.push(
        fail(
          check,
          `${where}: ${problem}`,
          'choose an address of this machine and a port above 1023 in cluster.json',
        ),
      );
    else if (name !== 'http' && isRunning) findings.push(ok(check, 'in use, and this node runs'));
    else findings.push(await holderFinding(check, config, node, isRunning));
  }
  return findings;
}

/** Finds out whether the program that has a port is this node. */
async function holderFinding(
  check: string,
  { tls }: ClusterConfig,
  node: NodeAddress,
  isRunning: boolean,
): Promise<Finding> {
  const stop = 'stop the other program, or choose other ports in cluster.json';
  if (!isRunning) return fail(check, 'taken by another program, and the node does not run', stop);
  const url = listenerUrl(node, tls);
  const answer = await askNode(new URL('/v1/cluster', url), ANSWER_MILLIS_MAX).catch((error: unknown) => ({
    status: 0,
    body: { message: error instanceof Error ? error.message : String(error) },
  }));
  const self: unknown = 'self' in answer.body ? answer.body['self'] : undefined;
  const found = typeof self === 'object' && self !== null && 'id' in self ? self.id : undefined;
  if (found === node.id) return ok(check, 'in use by this node');
  if (found !== undefined) return fail(check, `${url} is held by node ${JSON.stringify(found)}`, stop);
  const said = messageOf(answer.body) ?? `status ${answer.status}`;
  return warn(
    check,
    `taken, and the program there does not report that it is this node: ${said}`,
    unreadableAction(said),
  );
}

/** What to do about a node that does not report its cluster. @param said its answer, or why there is none */
export function unreadableAction(said: string): string {
  return said.includes(FOREIGN_CERTIFICATE)
    ? 'issue that certificate with --hostname for this address too (see `certificate of tls`)'
    : 'use a token of role read, or give --ca, and try again';
}

/** Returns undefined if the address is free. */
async function listenProblem({ host, port }: HostPort): Promise<string | undefined> {
  const server = createServer();
  return new Promise((resolve) => {
    server.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(undefined)));
  });
}

async function certificateFindings(
  directory: string,
  { tls, clusterId }: ClusterConfig,
  node: NodeAddress,
): Promise<Finding[]> {
  const { id: nodeId } = node;
  if (tls === undefined) return [];
  const path = (file: string): string => resolvePath(file, directory, nodeId);
  const { ca, cert, key, listeners } = tls;
  const nowMillis = Date.now();
  const sets = [
    {
      files: { ca: path(ca), cert: path(cert), key: path(key) },
      checks: { setting: 'tls', node: { clusterId, nodeId }, nowMillis },
      isForClients: listeners === true,
    },
    ...(typeof listeners === 'object'
      ? [
          {
            files: { cert: path(listeners.cert), key: path(listeners.key) },
            checks: { setting: 'tls.listeners', nowMillis },
            isForClients: true,
          },
        ]
      : []),
  ];
  return Promise.all(
    sets.map(async ({ files, checks, isForClients }) => {
      const check = `node ${nodeId}: certificate of ${checks.setting}`;
      const hostnames = hostsOf(node).map((host) => ` --hostname ${host}`);
      const issue = `issue another one, where the key of the CA is: \`quorate certs issue ${nodeId}${hostnames.join('')}\`, with the names that it has besides`;
      try {
        const { cert: pem, expiresMillis, isKeyShared } = await readCredentials(files, checks);
        const days = Math.floor((expiresMillis - nowMillis) / DAY_MILLIS);
        const found = `${files.cert} is valid for ${days} days`;
        if (days < CERTIFICATE_DAYS_MIN) return warn(check, found, issue);
        if (isKeyShared)
          return warn(check, `${found}; others may read ${files.key}`, `chmod 600 ${files.key}`);
        const foreign = isForClients ? hostsOf(node).filter((host) => !isFor(pem, host)) : [];
        if (foreign.length > 0) return warn(check, `${files.cert} is not for ${foreign.join(', ')}`, issue);
        return ok(check, found);
      } catch (error) {
        if (error instanceof ConfigError) return fail(check, error.message, issue);
        throw error;
      }
    }),
  );
}

/** Whether clients that reach a listener at this host accept its certificate (PEM). */
function isFor(pem: string, host: string): boolean {
  const certificate = new X509Certificate(pem);
  return (isIP(host) === 0 ? certificate.checkHost(host) : certificate.checkIP(host)) !== undefined;
}

async function exposureFinding(database: string, config: ClusterConfig, node: NodeAddress): Promise<Finding> {
  const check = `node ${node.id}: who may ask`;
  const known = await readKnownMembers(database);
  const safeguards = { tls: config.tls, hasTokens: hasTokens(config, known) };
  try {
    const open = exposureOf(node, safeguards, false);
    const { tls, hasTokens: isClosed } = safeguards;
    const lacks = [...(tls?.listeners === undefined ? ['TLS'] : []), ...(isClosed ? [] : ['tokens'])];
    return ok(
      check,
      open === undefined
        ? 'only requests with a token'
        : `open to every program on this machine: no ${lacks.join(' and no ')}`,
    );
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const action = 'give it TLS and tokens, or an address that only this machine reaches';
    return fail(check, error.message, action);
  }
}
