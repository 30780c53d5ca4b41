/**
 * `quorate container`: the entry point of a container. On the first start it creates the database of the node, as a
 * founder or as a joining node. On every start it writes `cluster.json` from the environment and runs the node. It
 * never recreates a database that existed.
 */
import { mkdir } from 'node:fs/promises';
import type { Server } from 'node:http';
import type { Command } from 'commander';
import { assert } from '../../raft/assert.ts';
import { hasStore } from '../../storage/files.ts';
import type { CheckedBackup } from '../backup/check-backup.ts';
import {
  localConfig,
  LOCAL_DEFAULTS,
  nodeDirectory,
  PARTITIONS_PER_NODE,
  writeCluster,
} from '../config/cluster-directory.ts';
import { type ClusterConfig, ConfigError, validateConfig } from '../config/config.ts';
import {
  backupToRestore,
  isFounder,
  makeDatabase,
  refuseFoundedWithout,
  refuseOtherBackup,
} from './container-restore.ts';
import { addContainerSecretsCommand } from './container-secrets.ts';
import { containerSettings, type ContainerSettings } from './container-settings.ts';
import { explained } from './command-line.ts';
import { exchange, type Other, serveRecord } from './founding-exchange.ts';
import {
  type Founding,
  foundingOf,
  type FoundingRecord,
  knownFounding,
  openRecord,
  writeRecord,
} from './founding-record.ts';
import { runNode } from './run-node.ts';

/** Adds `container` to the program. */
export function addContainerCommand(program: Command, version: string, print: (line: string) => void): void {
  const container = explained(program.command('container'), {
    does: 'run the node of this container, by its environment variables: see docs/operate/kubernetes.md#a-container',
    examples: ['QUORATE_CLUSTER_ID=limits QUORATE_HOST=quorate-{ordinal} quorate container'],
  }).action(async () => runContainer(await containerSettings(process.env), version));
  addContainerSecretsCommand(container, print);
}

/**
 * Ends the process on a signal. The first process of a container ignores signals that it does not handle. Before the
 * node runs there is nothing to lose.
 */
function stop(): void {
  process.exit(0);
}

async function runContainer(settings: ContainerSettings, version: string): Promise<void> {
  const { data, nodeId: id, logLevel, logFormat, insecure, listen } = settings;
  process.on('SIGTERM', stop);
  const founded = await prepare(settings, (line) => console.error(`quorate: ${line}`));
  process.off('SIGTERM', stop);
  // Read the settings file again, since it may have changed. The rest of the environment cannot change.
  const read = async (): Promise<ClusterConfig> => {
    const config = configOf(await containerSettings(process.env), founded.clusterId, founded.founding);
    await writeCluster(data, config);
    return config;
  };
  const stated = logLevel !== undefined && { logLevel };
  await runNode({ data, id, ...stated, logFormat, insecure, version, listen, read });
}

/** Prepares the database, and returns the facts that the cluster was founded with. */
async function prepare(
  settings: ContainerSettings,
  say: (line: string) => void,
): Promise<{ readonly clusterId: string; readonly founding: Founding }> {
  const { data, nodeId, listen, foundingPort: port } = settings;
  await mkdir(data, { recursive: true });
  const { clusterId: given } = settings;
  let record = await openRecord(data, { nodeId, ...(given !== undefined && { clusterId: given }) });
  const database = nodeDirectory(data, nodeId);
  // A database from a backup is created under another name, and renamed when it is complete.
  const isWhole = await hasStore(database);
  if (record.isMade === true && !isWhole)
    throw new ConfigError(
      database,
      'is gone, and with it the votes and grants of this node: bring the volume back, or use an empty one and a new id',
    );
  if (record.founding === undefined && isWhole)
    throw new ConfigError(data, 'holds a database that was not created by a container: use an empty volume');
  const known = record.founding ?? (await heardFounding(settings, record));
  if (known !== undefined) refuseFoundedWithout(settings, known);
  const backup = isWhole ? undefined : await backupToRestore(settings, known, say);
  const { zone } = settings;
  // The report of this container to the others until they agree on the founding.
  record = {
    ...record,
    ...(backup !== undefined && { backup: backup.sha256 }),
    ...(zone !== undefined && { zone }),
  };
  const server: Server = await serveRecord({ host: listen, port }, () => record);
  // The server must not keep the process alive when the node ends.
  server.unref();
  const founding = known ?? (await agreedFounding(settings, record, backup, say));
  if (!isWhole) refuseOtherBackup(settings, founding, backup);
  const { incarnation, isMade } = record;
  const clusterId = record.clusterId ?? founding.clusterId;
  assert(clusterId !== undefined, 'a container without a cluster id takes that of the founding');
  record = { clusterId, nodeId, incarnation, founding, ...(isMade === true && { isMade }) };
  await writeRecord(data, record);
  const config = configOf(settings, clusterId, founding);
  if (isMade !== true) {
    if (!isWhole) await makeDatabase(database, { nodeId, incarnation, config, backup }, say);
    record = { ...record, isMade: true };
    await writeRecord(data, record);
    say(
      isFounder(nodeId, founding)
        ? `node ${nodeId} founds cluster ${clusterId}`
        : `node ${nodeId} is prepared: add it with \`quorate nodes add\``,
    );
  }
  await writeCluster(data, config);
  return { clusterId, founding };
}

/**
 * Waits without a limit for the founders to agree. The log says what it waits for, and the container is not ready
 * meanwhile.
 */
async function agreedFounding(
  settings: ContainerSettings,
  record: FoundingRecord,
  backup: CheckedBackup | undefined,
  say: (line: string) => void,
): Promise<Founding> {
  const { founders, foundingPort: port } = settings;
  const { clusterId } = record;
  const stated = settings.partitions ?? founders * PARTITIONS_PER_NODE;
  const wanted = { founders, partitions: backup?.manifest.partitions ?? stated };
  const others = othersOf(settings);
  return exchange(others, { port, clusterId }, (records) => foundingOf(record, records, wanted), say);
}

/**
 * The founding as the others know it, if they answer at once. It is read before the backup, because a cluster that was
 * founded long ago needs none.
 */
async function heardFounding(
  settings: ContainerSettings,
  record: FoundingRecord,
): Promise<Founding | undefined> {
  const { restoreFrom, foundingPort: port } = settings;
  const { clusterId } = record;
  if (restoreFrom === undefined) return undefined;
  const heard = await exchange(
    othersOf(settings),
    { port, clusterId },
    (records) => ({ founding: knownFounding(record, records) }),
    () => undefined,
  );
  return heard.founding;
}

function othersOf(settings: ContainerSettings): readonly Other[] {
  return foundersOf(settings).filter(({ nodeId }) => nodeId !== settings.nodeId);
}

/** The founders of the cluster, or the nodes that replaced them. */
function foundersOf({ founders, addressOf }: ContainerSettings): readonly Other[] {
  return Array.from({ length: founders }, (_, ordinal) => {
    const { id, http } = addressOf(ordinal);
    return { nodeId: id, host: http.host };
  });
}

/**
 * The `cluster.json` of this container: the founders and this node. Other nodes report their address when they connect.
 */
function configOf(
  settings: ContainerSettings,
  clusterId: string,
  { partitions, replicas, founders, zones = [] }: Founding,
): ClusterConfig {
  const zoneOf = new Map(zones.map(({ id, zone }) => [id, zone]));
  const { ordinal, addressOf, local } = settings;
  const ordinals = new Set([...Array(settings.founders).keys(), ordinal]);
  const defaults = localConfig({ ...LOCAL_DEFAULTS, nodes: founders.length, partitions });
  return validateConfig({
    ...defaults,
    ...local,
    clusterId,
    partitions,
    replicas,
    founders,
    nodes: [...ordinals].map(addressOf).map((node) => {
      const zone = zoneOf.get(node.id);
      return { ...node, ...(zone !== undefined && { zone }) };
    }),
  });
}
