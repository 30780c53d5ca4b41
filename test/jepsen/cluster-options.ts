/** The options of a cluster under test, and the configuration that its clients see. */
import type { RandomBelow } from '../../raft/core-state.ts';
import { localConfig } from '../../src/config/cluster-directory.ts';
import type { ClusterConfig, Timing } from '../../src/config/config.ts';
import type { Rule } from '../../src/api/rule.ts';
import { freePorts } from '../cluster/harness.ts';

export interface ClusterUnderTestOptions {
  readonly nodes: number;
  readonly rules: readonly Rule[];
  readonly random: RandomBelow;
  /** The number of nodes that may join later. Default 2. */
  readonly spares?: number;
  readonly partitions?: number;
  readonly replicas?: number;
  readonly timing?: Timing;
  /** The bug that every node has: see mutants.ts. */
  readonly mutant?: string;
  /** Default 4 MiB: a node on a small volume must be able to work. */
  readonly freeFloorBytes?: number;
  /** Default 4 KiB: every run must take snapshots, start from them and install them. */
  readonly snapshotEveryBytes?: number;
  /** How long nodes remember request ids. Default: as in a new cluster. */
  readonly requestIdHorizonMillis?: number;
  /**
   * Gives the last node, and some of the spares, a small tmpfs, and each other node its own ext4, if the machine can.
   * Default true.
   */
  readonly volumes?: boolean;
}

const SPARES_DEFAULT = 2;
const PARTITIONS_DEFAULT = 8;
const FREE_FLOOR_BYTES_DEFAULT = 4 << 20;
const SNAPSHOT_EVERY_BYTES_DEFAULT = 4 << 10;

/** Real addresses, including the spares. */
export async function configOf(options: ClusterUnderTestOptions): Promise<ClusterConfig> {
  const { nodes, spares = SPARES_DEFAULT, partitions = PARTITIONS_DEFAULT } = options;
  const base = localConfig({ nodes, partitions, limit: 1, windowMillis: 1_000, basePort: 1 });
  const ports = await freePorts((nodes + spares) * 3);
  const addresses = Array.from({ length: nodes + spares }, (_, i) => ({
    id: i + 1,
    http: { host: '127.0.0.1', port: ports[3 * i] ?? 0 },
    peer: { host: '127.0.0.1', port: ports[3 * i + 1] ?? 0 },
    resp: { host: '127.0.0.1', port: ports[3 * i + 2] ?? 0 },
  }));
  return {
    ...base,
    nodes: addresses,
    rules: {
      ...base.rules,
      // Clients name the rules they use. The first of the list is for requests without a rule.
      rules: [...base.rules.rules.filter(({ id }) => isFree(id, options.rules)), ...options.rules],
      requestIdHorizonMillis: options.requestIdHorizonMillis ?? base.rules.requestIdHorizonMillis,
    },
    replicas: options.replicas ?? base.replicas,
    timing: options.timing ?? base.timing,
    freeFloorBytes: options.freeFloorBytes ?? FREE_FLOOR_BYTES_DEFAULT,
    snapshotEveryBytes: options.snapshotEveryBytes ?? SNAPSHOT_EVERY_BYTES_DEFAULT,
  };
}

function isFree(id: string, rules: readonly Rule[]): boolean {
  return rules.every((rule) => rule.id !== id);
}
