/**
 * Prometheus metrics about the operation of a node: version, Raft groups, disk and connections. Most are read when
 * Prometheus asks; the others are counted per entry, write or snapshot, never per request.
 */
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { RaftStatus } from '../../raft/status.ts';
import { NO_NODE, type NodeId } from '../../raft/types.ts';
import type { EntryTiming } from '../partition/entry-timing.ts';

/** Where the values are read. */
export interface OperationSources {
  /** Version of the package. */
  readonly version: string;
  readonly isReady: () => boolean;
  readonly isDraining: () => boolean;
  /** All groups of this node. */
  readonly groups: () => Iterable<RaftStatus>;
  /** Client connections by listener. */
  readonly connections: () => Promise<Iterable<readonly [string, number]>>;
  /** Expiry of the certificates in use, by setting of `cluster.json`; empty without TLS. */
  readonly certificates: () => Iterable<readonly [string, number]>;
  /** Number of nodes with connections in both directions. */
  readonly peers: () => number;
  readonly diskBytes: () => Promise<number>;
  readonly diskFreeBytes: () => Promise<number>;
  readonly freeFloorBytes: () => number;
  readonly slowDecisions: () => number;
}

/** A snapshot that is in effect on disk. */
export interface KeptSnapshot {
  readonly from: 'self' | 'leader';
  readonly bytes: number;
  /** Since its first chunk was written. */
  readonly seconds: number;
}

const SECONDS = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2];
const SNAPSHOT_SECONDS = [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60];

/** The operation metrics of one node. */
export class OperationMetrics {
  readonly #commitSeconds: Histogram;
  readonly #queueSeconds: Histogram;
  readonly #applySeconds: Histogram;
  readonly #leaderChanges: Counter;
  readonly #snapshotSeconds: Histogram;
  readonly #snapshotBytes: Counter;

  constructor(sources: OperationSources, registry: Registry) {
    const registers = [registry];
    const histogram = (name: string, help: string, buckets: number[], labelNames: string[] = []): Histogram =>
      new Histogram({ name, help, buckets, labelNames, registers });
    this.#commitSeconds = histogram(
      'quorate_commit_seconds',
      'From the proposal of an entry by this leader until a quorum has it on disk.',
      SECONDS,
    );
    this.#queueSeconds = histogram(
      'quorate_queue_seconds',
      'Longest wait of a request in an entry for its place in the log.',
      SECONDS,
    );
    this.#applySeconds = histogram(
      'quorate_apply_seconds',
      'Time to apply an entry and answer its requests.',
      SECONDS,
    );
    this.#snapshotSeconds = histogram(
      'quorate_snapshot_seconds',
      'Time from the first chunk of a snapshot on disk until it is in effect, by origin: self or leader.',
      SNAPSHOT_SECONDS,
      ['from'],
    );
    const counter = (name: string, help: string, labelNames: string[]): Counter =>
      new Counter({ name, help, labelNames, registers });
    this.#snapshotBytes = counter('quorate_snapshot_bytes_total', 'Snapshots that took effect.', ['from']);
    this.#leaderChanges = counter(
      'quorate_leader_changes_total',
      'Leaders that the replicas here have found (elected) or lost.',
      ['what'],
    );
    // Create all series, so that they exist before their first event.
    for (const what of ['elected', 'lost']) this.#leaderChanges.inc({ what }, 0);
    for (const from of ['self', 'leader']) {
      this.#snapshotSeconds.zero({ from });
      this.#snapshotBytes.inc({ from }, 0);
    }
    addIdentity(sources, registers);
    addGroups(sources, registers);
    addCertificates(sources, registers);
    addSurroundings(sources, registers);
  }

  /** Records an applied entry. */
  entryApplied({ queueMillis, commitMillis, applyMillis }: EntryTiming): void {
    this.#queueSeconds.observe(queueMillis / 1_000);
    this.#commitSeconds.observe(commitMillis / 1_000);
    this.#applySeconds.observe(applyMillis / 1_000);
  }

  /** Records a change of leader. */
  leaderChanged(leader: NodeId): void {
    this.#leaderChanges.inc({ what: leader === NO_NODE ? 'lost' : 'elected' });
  }

  /** Records a snapshot. */
  snapshotKept({ from, bytes, seconds }: KeptSnapshot): void {
    this.#snapshotSeconds.observe({ from }, seconds);
    this.#snapshotBytes.inc({ from }, bytes);
  }
}

type Read = () => number | Promise<number>;

function gauge(name: string, help: string, read: Read, registers: Registry[]): void {
  const metric: Gauge = new Gauge({
    name,
    help,
    registers,
    async collect() {
      metric.set(await read());
    },
  });
}

function addIdentity({ version, isReady, isDraining }: OperationSources, registers: Registry[]): void {
  const labelNames = ['version', 'node_version'];
  const info: Gauge = new Gauge({
    name: 'quorate_build_info',
    help: 'Always 1; the labels are the versions of quorate and Node.js.',
    labelNames,
    registers,
  });
  info.set({ version, node_version: process.version }, 1);
  gauge('quorate_ready', '1 while /readyz is 200.', () => Number(isReady()), registers);
  gauge('quorate_draining', '1 while an operator drains this node.', () => Number(isDraining()), registers);
}

function addGroups({ groups }: OperationSources, registers: Registry[]): void {
  const most = (of: (status: RaftStatus) => number) => (): number => {
    let max = 0;
    for (const status of groups()) max = Math.max(max, of(status));
    return max;
  };
  gauge(
    'quorate_apply_lag_entries',
    'Committed entries that are not applied here yet, in the group with most of them.',
    most(({ commit, applied }) => commit - applied),
    registers,
  );
  gauge(
    'quorate_replication_lag_entries',
    'Entries that the slowest member of a group led here lacks.',
    most(({ role, match, lastIndex }) =>
      role === 'leader' ? Math.max(0, ...[...match.values()].map((index) => lastIndex - index)) : 0,
    ),
    registers,
  );
  gauge(
    'quorate_groups_without_leader',
    'Groups on this node without a known leader, including group 0.',
    () => [...groups()].filter(({ leader }) => leader === NO_NODE).length,
    registers,
  );
}

function addCertificates({ certificates }: OperationSources, registers: Registry[]): void {
  const expiry: Gauge = new Gauge({
    name: 'quorate_certificate_expiry_timestamp_seconds',
    help: 'When a certificate of this node expires, in seconds since 1970, by setting of cluster.json.',
    labelNames: ['setting'],
    registers,
    collect() {
      for (const [setting, expiresMillis] of certificates()) expiry.set({ setting }, expiresMillis / 1_000);
    },
  });
}

function addSurroundings(sources: OperationSources, registers: Registry[]): void {
  const { connections, peers, diskBytes, diskFreeBytes, freeFloorBytes, slowDecisions } = sources;
  const open: Gauge = new Gauge({
    name: 'quorate_connections',
    help: 'Connections of clients, by listener.',
    labelNames: ['listener'],
    registers,
    async collect() {
      for (const [listener, count] of await connections()) open.set({ listener }, count);
    },
  });
  gauge('quorate_peer_connections', 'Nodes with connections in both directions.', peers, registers);
  gauge('quorate_disk_bytes', 'Size of the database of this node on disk.', diskBytes, registers);
  gauge('quorate_disk_free_bytes', 'Free space on that disk.', diskFreeBytes, registers);
  gauge(
    'quorate_disk_free_floor_bytes',
    'With less free space than this, others lead, and in the end requests are refused.',
    freeFloorBytes,
    registers,
  );
  const slow: Counter = new Counter({
    name: 'quorate_slow_decisions_total',
    help: 'Slow entries and slow timed answers; the log explains some of them.',
    registers,
    collect() {
      slow.reset();
      slow.inc(slowDecisions());
    },
  });
}
