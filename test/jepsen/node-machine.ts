/**
 * The things that a node of a cluster under test has for itself, as on a machine of its own: a directory, a file
 * system, clocks, and the environment of its process. Starts nothing.
 */
import { mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { FaultNetwork } from './fault-network.ts';
import type { NodeId } from '../../raft/types.ts';
import { nodeDirectory, writeCluster } from '../../src/config/cluster-directory.ts';
import { drawIncarnation, factsOf } from '../../src/config/cluster-facts.ts';
import type { NodeAddress } from '../../src/api/node-address.ts';
import type { ClusterConfig } from '../../src/config/config.ts';
import { bootstrapStore } from '../../storage/bootstrap-store.ts';
import type { Order } from './injected/order.ts';
import { lacks, libfaketime } from './machine.ts';
import { Volume } from './volume.ts';

export interface Machine {
  /** The real address of the node, behind the proxies. */
  readonly address: NodeAddress;
  /** Holds cluster.json, the database, the logs. */
  readonly directory: string;
  readonly database: string;
  /** The file system of its database, if it has one of its own. */
  readonly volume: Volume | undefined;
}

interface WallClock {
  readonly offsetMillis: number;
  readonly rate: number;
}

/** The errors of its clocks. */
export interface Clocks {
  readonly wall: WallClock;
  readonly monotonicPpm: number;
}

export const RIGHT_CLOCKS: Clocks = { wall: { offsetMillis: 0, rate: 1 }, monotonicPpm: 0 };

const TMPFS_BYTES = 96 << 20;
const EXT4_BYTES = 256 << 20;

/** The volume that the machine can give node `id` for its database. */
export function volumeFor(directory: string, id: NodeId, founders: number): Volume | undefined {
  const path = join(directory, 'volumes', `node-${id}`);
  if (id % founders === 0) return lacks.tmpfs() === undefined ? Volume.tmpfs(path, TMPFS_BYTES) : undefined;
  return lacks.ext4() === undefined ? Volume.ext4(path, EXT4_BYTES) : undefined;
}

export function machineAt(root: string, address: NodeAddress, volume: Volume | undefined): Machine {
  const directory = join(root, `machine-${address.id}`);
  return { address, directory, database: nodeDirectory(directory, address.id), volume };
}

/**
 * Creates a node's directory. The addresses of its peers are those of its proxies, and its log lies beside those of the
 * others.
 */
export async function createDirectory(
  { address: { id }, directory, database, volume }: Machine,
  config: ClusterConfig,
  network: FaultNetwork,
): Promise<void> {
  const logs = join(directory, '..', 'logs');
  mkdirSync(logs, { recursive: true });
  mkdirSync(join(directory, '..', 'archive'), { recursive: true });
  mkdirSync(directory);
  symlinkSync(logs, join(directory, 'logs'));
  if (volume !== undefined) symlinkSync(join(volume.path, 'database'), database);
  await bootstrapStore(volume === undefined ? database : join(volume.path, 'database'), {
    nodeId: id,
    incarnation: config.founders.find((founder) => founder.id === id)?.incarnation ?? drawIncarnation(),
    facts: factsOf(config),
  });
  const nodes = config.nodes.map((node) =>
    node.id === id ? node : { ...node, peer: network.addressOf(id, node.id) },
  );
  await writeCluster(directory, { ...config, nodes });
}

function faketimeFile(machine: Machine): string {
  return join(machine.directory, 'faketime');
}

/** Replaced in one step, since libfaketime reads it each time it reads the clock. */
export function writeFaketime(machine: Machine, { offsetMillis, rate }: WallClock): void {
  const path = faketimeFile(machine);
  const seconds = (offsetMillis / 1_000).toFixed(3);
  writeFileSync(`${path}.new`, `${offsetMillis < 0 ? '' : '+'}${seconds} x${rate}\n`);
  renameSync(`${path}.new`, path);
}

/** Facts about the whole cluster that a node's process needs. */
export interface Surroundings {
  /** The library that makes syncs fail, if it could be compiled. */
  readonly syncFault: string | undefined;
  readonly archiveDirectory: string;
  /** The real ports of the other nodes: only the proxies may reach them. */
  readonly unreachablePorts: readonly number[];
  readonly mutant: string | undefined;
}

/** The environment of its process, as arguments of `env`. */
export function environmentOf(
  machine: Machine,
  clocks: Clocks,
  { syncFault, archiveDirectory, unreachablePorts, mutant }: Surroundings,
): string[] {
  const faketime = libfaketime();
  const libraries = [syncFault, faketime].filter((library) => library !== undefined);
  const orders: Order[] = [{ kind: 'monotonicRate', ppm: clocks.monotonicPpm }];
  if (faketime === undefined) orders.push({ kind: 'wallClock', ...clocks.wall });
  else writeFaketime(machine, clocks.wall);
  return [
    ...(libraries.length === 0 ? [] : [`LD_PRELOAD=${libraries.join(' ')}`]),
    `QUORATE_SYNC_FAULT=${join(machine.directory, 'sync-fault')}`,
    `QUORATE_TEST_ORDERS=${JSON.stringify(orders)}`,
    `QUORATE_TEST_ARCHIVE=${join(archiveDirectory, `node-${machine.address.id}.jsonl`)}`,
    `QUORATE_TEST_UNREACHABLE=${unreachablePorts.join()}`,
    ...(mutant === undefined ? [] : [`QUORATE_TEST_MUTANT=${mutant}`]),
    `FAKETIME_TIMESTAMP_FILE=${faketimeFile(machine)}`,
    'FAKETIME_NO_CACHE=1',
    // Node's timers hang when this clock goes back, and the real one never does.
    'DONT_FAKE_MONOTONIC=1',
  ];
}
