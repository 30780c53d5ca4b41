/**
 * One node of a cluster under test and all that is its own, as on a machine of its own: a directory, a file system, clocks,
 * and what its process is told. Starts nothing.
 */
import { mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { FaultNetwork } from '../../cluster/fault-network.ts';
import type { NodeProcess } from '../../cluster/processes.ts';
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
  readonly address: NodeAddress;
  /** Holds cluster.json, the database, the logs. */
  readonly directory: string;
  readonly volume: Volume | undefined;
  role: 'spare' | 'member' | 'retired';
  process: NodeProcess | undefined;
  isPaused: boolean;
  expected: string | undefined;
  wallClock: { readonly offsetMillis: number; readonly rate: number };
  monotonicPpm: number;
}

const TMPFS_BYTES = 96 << 20;
const EXT4_BYTES = 256 << 20;

/** What the machine can give node `id` for its database. */
export function volumeFor(directory: string, id: NodeId, founders: number): Volume | undefined {
  const path = join(directory, 'volumes', `node-${id}`);
  if (id % founders === 0) return lacks.tmpfs() === undefined ? Volume.tmpfs(path, TMPFS_BYTES) : undefined;
  return lacks.ext4() === undefined ? Volume.ext4(path, EXT4_BYTES) : undefined;
}

export function newMachine({
  root,
  address,
  volume,
  isSpare,
}: {
  readonly root: string;
  readonly address: NodeAddress;
  readonly volume: Volume | undefined;
  readonly isSpare: boolean;
}): Machine {
  return {
    address,
    directory: join(root, `machine-${address.id}`),
    volume,
    role: isSpare ? 'spare' : 'member',
    process: undefined,
    isPaused: false,
    expected: undefined,
    wallClock: { offsetMillis: 0, rate: 1 },
    monotonicPpm: 0,
  };
}

/** A node's directory: its peers are where its proxies are, and its log beside those of the others. */
export async function createDirectory(
  { address: { id }, directory, volume }: Machine,
  config: ClusterConfig,
  network: FaultNetwork,
): Promise<void> {
  const logs = join(directory, '..', 'logs');
  mkdirSync(logs, { recursive: true });
  mkdirSync(join(directory, '..', 'archive'), { recursive: true });
  mkdirSync(directory);
  symlinkSync(logs, join(directory, 'logs'));
  const database = nodeDirectory(directory, id);
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

/** Replaced in one step: libfaketime reads it at every look at the clock. */
export function writeFaketime(machine: Machine): void {
  const { offsetMillis, rate } = machine.wallClock;
  const path = faketimeFile(machine);
  const seconds = (offsetMillis / 1_000).toFixed(3);
  writeFileSync(`${path}.new`, `${offsetMillis < 0 ? '' : '+'}${seconds} x${rate}\n`);
  renameSync(`${path}.new`, path);
}

/** What of the whole cluster a node's process must know. */
interface Surroundings {
  /** The library that makes syncs fail, if it could be compiled. */
  readonly syncFault: string | undefined;
  readonly archiveDirectory: string;
  /** Where the other nodes really listen: only their proxies lead there. */
  readonly unreachablePorts: readonly number[];
  readonly mutant: string | undefined;
}

/** What its process is told, as arguments of `env`. */
export function environmentOf(
  machine: Machine,
  { syncFault, archiveDirectory, unreachablePorts, mutant }: Surroundings,
): string[] {
  const faketime = libfaketime();
  const libraries = [syncFault, faketime].filter((library) => library !== undefined);
  const orders: Order[] = [{ kind: 'monotonicRate', ppm: machine.monotonicPpm }];
  if (faketime === undefined) orders.push({ kind: 'wallClock', ...machine.wallClock });
  else writeFaketime(machine);
  return [
    ...(libraries.length === 0 ? [] : [`LD_PRELOAD=${libraries.join(' ')}`]),
    `QUORATE_SYNC_FAULT=${join(machine.directory, 'sync-fault')}`,
    `QUORATE_TEST_ORDERS=${JSON.stringify(orders)}`,
    `QUORATE_TEST_ARCHIVE=${join(archiveDirectory, `node-${machine.address.id}.jsonl`)}`,
    `QUORATE_TEST_UNREACHABLE=${unreachablePorts.join()}`,
    ...(mutant === undefined ? [] : [`QUORATE_TEST_MUTANT=${mutant}`]),
    `FAKETIME_TIMESTAMP_FILE=${faketimeFile(machine)}`,
    'FAKETIME_NO_CACHE=1',
    // Timers of Node hang when this clock goes back, and the real one never does.
    'DONT_FAKE_MONOTONIC=1',
  ];
}
