/**
 * `quorate container`: the entry point of a container. The first time it makes the database of its node, as a founder or as one that
 * joins; every time it writes `cluster.json` by its environment, and runs the node. It never makes a database anew that was there.
 */
import { mkdir } from 'node:fs/promises';
import type { Server } from 'node:http';
import type { Command } from 'commander';
import { bootstrapStore } from '../../storage/bootstrap-store.ts';
import { hasStore } from '../../storage/files.ts';
import { localConfig, LOCAL_DEFAULTS, nodeDirectory, writeCluster } from '../config/cluster-directory.ts';
import { factsOf } from '../config/cluster-facts.ts';
import { type ClusterConfig, ConfigError, validateConfig } from '../config/config.ts';
import { containerSettings, type ContainerSettings } from './container-settings.ts';
import { exchange, type Other, serveRecord } from './founding-exchange.ts';
import {
  type Founding,
  foundingOf,
  type FoundingRecord,
  openRecord,
  writeRecord,
} from './founding-record.ts';
import { runNode } from './run-node.ts';

export function addContainerCommand(program: Command, version: string): void {
  program
    .command('container')
    .description('run the node of this container, by its environment: see cluster/README.md')
    .action(async () => runContainer(await containerSettings(process.env), version));
}

/** As the first process of a container it would be deaf to a signal that it does not take. Before the node runs it has promised nothing. */
function stop(): void {
  process.exit(0);
}

async function runContainer(settings: ContainerSettings, version: string): Promise<void> {
  const { data, nodeId: id, logLevel, insecure, listen } = settings;
  process.on('SIGTERM', stop);
  await prepare(settings, (line) => console.error(`quorate: ${line}`));
  process.off('SIGTERM', stop);
  await runNode({ data, id, logLevel, insecure, version, listen });
}

async function prepare(settings: ContainerSettings, say: (line: string) => void): Promise<void> {
  const { data, clusterId, nodeId, listen, foundingPort: port } = settings;
  await mkdir(data, { recursive: true });
  let record = await openRecord(data, { clusterId, nodeId });
  const database = nodeDirectory(data, nodeId);
  if (record.isMade === true && !(await hasStore(database)))
    throw new ConfigError(
      database,
      'is gone, and with it what this node promised: bring the volume back, or give this container an empty one and a new id',
    );
  if (record.founding === undefined && (await hasStore(database)))
    throw new ConfigError(
      data,
      'holds the database of a node that no container made: give this one an empty volume',
    );
  const server: Server = await serveRecord({ host: listen, port }, () => record);
  // It must not keep a node alive that ends.
  server.unref();
  const founding = record.founding ?? (await agreedFounding(settings, record, say));
  record = { ...record, founding };
  await writeRecord(data, record);
  const config = configOf(settings, founding);
  if (record.isMade !== true) {
    const { incarnation } = record;
    if (!(await hasStore(database)))
      await bootstrapStore(database, { nodeId, incarnation, facts: factsOf(config) });
    record = { ...record, isMade: true };
    await writeRecord(data, record);
    const isFounder = founding.founders.some(({ id }) => id === nodeId);
    say(
      isFounder
        ? `node ${nodeId} founds cluster ${clusterId}`
        : `node ${nodeId} is prepared: add it with \`quorate nodes add\``,
    );
  }
  await writeCluster(data, config);
}

/** Waits for as long as it takes: whoever runs containers sees it in their log, and that they are not ready. */
async function agreedFounding(
  settings: ContainerSettings,
  record: FoundingRecord,
  say: (line: string) => void,
): Promise<Founding> {
  const { clusterId, foundingPort: port } = settings;
  const others = foundersOf(settings).filter(({ nodeId }) => nodeId !== settings.nodeId);
  return exchange(others, { port, clusterId }, (told) => foundingOf(record, told, settings), say);
}

/** Those that the cluster is founded with, or who took the place of one. */
function foundersOf({ founders, addressOf }: ContainerSettings): readonly Other[] {
  return Array.from({ length: founders }, (_, ordinal) => {
    const { id, http } = addressOf(ordinal);
    return { nodeId: id, host: http.host };
  });
}

/** `cluster.json` of this container: where the founders are, and itself. Others tell where they are when they connect. */
function configOf(settings: ContainerSettings, { partitions, replicas, founders }: Founding): ClusterConfig {
  const { clusterId, ordinal, addressOf, local } = settings;
  const ordinals = new Set([...Array(settings.founders).keys(), ordinal]);
  const defaults = localConfig({ ...LOCAL_DEFAULTS, nodes: founders.length, partitions });
  return validateConfig({
    ...defaults,
    ...local,
    clusterId,
    partitions,
    replicas,
    founders,
    nodes: [...ordinals].map(addressOf),
  });
}
