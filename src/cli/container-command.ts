/**
 * `quorate container`: the entry point of a container. The first time it makes the database of its node, as a founder or as one that
 * joins; every time it writes `cluster.json` by its environment, and runs the node. It never makes a database anew that was there.
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
import { explained } from './command-help.ts';
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

export function addContainerCommand(program: Command, version: string, print: (line: string) => void): void {
  const container = explained(program.command('container'), {
    does: 'run the node of this container, by its environment: see cluster/README.md',
    examples: ['QUORATE_CLUSTER_ID=limits QUORATE_HOST=quorate-{ordinal} quorate container'],
  }).action(async () => runContainer(await containerSettings(process.env), version));
  addContainerSecretsCommand(container, print);
}

/** As the first process of a container it would be deaf to a signal that it does not take. Before the node runs it has promised nothing. */
function stop(): void {
  process.exit(0);
}

async function runContainer(settings: ContainerSettings, version: string): Promise<void> {
  const { data, nodeId: id, logLevel, logFormat, insecure, listen } = settings;
  process.on('SIGTERM', stop);
  const founded = await prepare(settings, (line) => console.error(`quorate: ${line}`));
  process.off('SIGTERM', stop);
  // The file of settings may be another by then; nothing else of its environment ever is.
  const read = async (): Promise<ClusterConfig> => {
    const config = configOf(await containerSettings(process.env), founded.clusterId, founded.founding);
    await writeCluster(data, config);
    return config;
  };
  const stated = logLevel !== undefined && { logLevel };
  await runNode({ data, id, ...stated, logFormat, insecure, version, listen, read });
}

/** Returns what its cluster was founded with. */
async function prepare(
  settings: ContainerSettings,
  say: (line: string) => void,
): Promise<{ readonly clusterId: string; readonly founding: Founding }> {
  const { data, nodeId, listen, foundingPort: port } = settings;
  await mkdir(data, { recursive: true });
  const { clusterId: given } = settings;
  let record = await openRecord(data, { nodeId, ...(given !== undefined && { clusterId: given }) });
  const database = nodeDirectory(data, nodeId);
  // One that is made of a backup gets its name when it is filled.
  const isWhole = await hasStore(database);
  if (record.isMade === true && !isWhole)
    throw new ConfigError(
      database,
      'is gone, and with it what this node promised: bring the volume back, or give this container an empty one and a new id',
    );
  if (record.founding === undefined && isWhole)
    throw new ConfigError(
      data,
      'holds the database of a node that no container made: give this one an empty volume',
    );
  const known = record.founding ?? (await heardFounding(settings, record));
  if (known !== undefined) refuseFoundedWithout(settings, known);
  const backup = isWhole ? undefined : await backupToRestore(settings, known, say);
  const { zone } = settings;
  // What it tells the others, and needs no more once they agree.
  record = {
    ...record,
    ...(backup !== undefined && { backup: backup.sha256 }),
    ...(zone !== undefined && { zone }),
  };
  const server: Server = await serveRecord({ host: listen, port }, () => record);
  // It must not keep a node alive that ends.
  server.unref();
  const founding = known ?? (await agreedFounding(settings, record, backup, say));
  if (!isWhole) refuseOtherBackup(settings, founding, backup);
  const { incarnation, isMade } = record;
  const clusterId = record.clusterId ?? founding.clusterId;
  assert(clusterId !== undefined, 'whoever was given no cluster id has that of the founding');
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

/** Waits for as long as it takes: whoever runs containers sees it in their log, and that they are not ready. */
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
  return exchange(others, { port, clusterId }, (told) => foundingOf(record, told, wanted), say);
}

/** What others know at once. Before a backup is read: who takes part in what was founded long ago needs none. */
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
    (told) => ({ founding: knownFounding(record, told) }),
    () => undefined,
  );
  return heard.founding;
}

function othersOf(settings: ContainerSettings): readonly Other[] {
  return foundersOf(settings).filter(({ nodeId }) => nodeId !== settings.nodeId);
}

/** Those that the cluster is founded with, or who took the place of one. */
function foundersOf({ founders, addressOf }: ContainerSettings): readonly Other[] {
  return Array.from({ length: founders }, (_, ordinal) => {
    const { id, http } = addressOf(ordinal);
    return { nodeId: id, host: http.host };
  });
}

/** `cluster.json` of this container: where the founders are, and itself. Others tell where they are when they connect. */
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
