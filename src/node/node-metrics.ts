/** Connects the metrics of a node to their sources: core, listeners, disk and connections. */
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { RaftStatus } from '../../raft/status.ts';
import { freeBytes } from '../../storage/free-space.ts';
import type { ApiListener } from '../api/api-listener.ts';
import { META_GROUP } from '../meta/cluster-placement.ts';
import { groupOfPartition } from '../partition/placement.ts';
import type { GrpcListener } from '../grpc/grpc-listener.ts';
import type { RespListener } from '../resp/resp-listener.ts';
import type { LoadShedder } from '../shedding/load-shedder.ts';
import type { TcpTransport } from '../transport/tcp-transport.ts';
import type { Access } from './access.ts';
import type { ListenerUsage } from './listener-usage.ts';
import type { LiveSettings } from './live-settings.ts';
import { Metrics } from './metrics.ts';
import type { NodeCore } from './node-core.ts';
import type { NodeTls } from '../tls/node-tls.ts';
import type { OperationSources } from './operation-metrics.ts';
import type { NodeReadiness } from './readiness.ts';
import type { SlowDecisions } from './slow-decisions.ts';

interface MetricsInit {
  readonly version?: string;
  readonly dataDirectory: string;
  readonly tls?: NodeTls;
}

interface Measured {
  readonly settings: LiveSettings;
  readonly readiness: NodeReadiness;
  readonly resp: RespListener | undefined;
  readonly grpc: GrpcListener | undefined;
  readonly usage: ListenerUsage;
  readonly access: Access;
  readonly slow: SlowDecisions;
  readonly shedder: LoadShedder;
  readonly transport: TcpTransport;
  /** By name; entries may be added later. */
  readonly listeners: Readonly<Record<string, ApiListener>>;
}

/** The metrics of a node. */
export function metricsOf(init: MetricsInit, measured: Measured): Metrics {
  const { readiness, resp, grpc, usage, access, shedder } = measured;
  return new Metrics({
    respAnswers: () => Object.entries(resp?.counts.answers ?? {}),
    grpcAnswers: () => Object.entries(grpc?.answers ?? {}),
    leaderships: () => readiness.core?.raft.leaderships ?? 0,
    openRequests: () => readiness.core?.router.openCount ?? 0,
    waitingProposals: () => readiness.core?.waitingCount ?? 0,
    stateBytes: () => readiness.core?.capacity.stateBytes ?? 0,
    stateBytesMax: () => readiness.core?.capacity.stateBytesMax ?? 0,
    refusedAtCapacity: () => readiness.core?.capacity.refused ?? 0,
    reservations: () => readiness.core?.requests.reservations.counts ?? { released: 0, left: 0 },
    restoredMillis: () =>
      Math.max(0, ...[...(readiness.core?.partitions.values() ?? [])].map((each) => each.restoredMillis)),
    isClockUnfit: () => readiness.core?.clock.verdict.fit === false,
    clockRatesPpm: () => readiness.core?.clock.estimates() ?? [],
    usage,
    operation: operationOf(init, measured),
    shedding: () => shedder.report,
    authFailures: () => Object.entries(access.failures),
  });
}

/** Raft status of all groups on this node. */
function statusesOf({ raft, partitions }: NodeCore): RaftStatus[] {
  return [META_GROUP, ...[...partitions.keys()].map(groupOfPartition)].flatMap(
    (group) => raft.status(group) ?? [],
  );
}

function operationOf(
  { version = 'unknown', dataDirectory, tls }: MetricsInit,
  { readiness, slow, transport, listeners, settings }: Measured,
): OperationSources {
  return {
    version,
    isReady: () => readiness.current.status === 'ready',
    isDraining: () => readiness.isDraining,
    groups: () => (readiness.core === undefined ? [] : statusesOf(readiness.core)),
    connections: async () =>
      Promise.all(
        Object.entries(listeners).map(
          async ([name, listener]) => [name, await listener.connectionCount()] as const,
        ),
      ),
    certificates: () =>
      [tls?.peers.credentials, tls?.listeners].flatMap((each) =>
        each === undefined ? [] : [[each.setting, each.current.expiresMillis] as const],
      ),
    peers: () => [...transport.peers].filter((peer) => transport.isConnectedBothWays(peer)).length,
    diskBytes: async () => bytesIn(dataDirectory),
    diskFreeBytes: async () => freeBytes(dataDirectory).catch(() => 0),
    freeFloorBytes: settings.freeFloorBytes,
    slowDecisions: () => slow.count,
  };
}

/** Total size of the files in a directory, in bytes. Files that vanish meanwhile are ignored. */
async function bytesIn(directory: string): Promise<number> {
  let bytes = 0;
  for (const name of await readdir(directory).catch((): string[] => [])) {
    const found = await stat(join(directory, name)).catch(() => undefined);
    if (found?.isFile() === true) bytes += found.size;
  }
  return bytes;
}
