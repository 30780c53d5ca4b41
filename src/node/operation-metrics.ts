/**
 * How a node works, for Prometheus: who it is, its Raft groups, its disk and its connections. What can be looked up is looked up
 * when Prometheus asks; what is counted is counted per entry, write or snapshot, never per request.
 */
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { RaftStatus } from '../../raft/status.ts';
import { NO_NODE, type NodeId } from '../../raft/types.ts';
import type { EntryTiming } from '../partition/entry-timing.ts';

export interface OperationSources {
  /** Of the package. */
  readonly version: string;
  readonly isReady: () => boolean;
  readonly isDraining: () => boolean;
  /** Of all groups of this node. */
  readonly groups: () => Iterable<RaftStatus>;
  /** Clients' connections by door. */
  readonly connections: () => Promise<Iterable<readonly [string, number]>>;
  /** Until when the certificates in force are valid, by setting of `cluster.json`; none without TLS. */
  readonly certificates: () => Iterable<readonly [string, number]>;
  /** Nodes that can be asked and can answer. */
  readonly peers: () => number;
  readonly diskBytes: () => Promise<number>;
  readonly diskFreeBytes: () => Promise<number>;
  readonly freeFloorBytes: () => number;
  readonly slowDecisions: () => number;
}

/** A snapshot that is in effect on the disk. */
export interface KeptSnapshot {
  readonly from: 'self' | 'leader';
  readonly bytes: number;
  /** Since its first chunk was written. */
  readonly seconds: number;
}

const SECONDS = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2];
const SNAPSHOT_SECONDS = [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60];

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
      'What a request of an entry waited at most for a place in the log.',
      SECONDS,
    );
    this.#applySeconds = histogram(
      'quorate_apply_seconds',
      'To apply an entry and answer its requests.',
      SECONDS,
    );
    this.#snapshotSeconds = histogram(
      'quorate_snapshot_seconds',
      'From the first chunk of a snapshot on disk until it is in effect: own ones, and those of leaders.',
      SNAPSHOT_SECONDS,
      ['from'],
    );
    const counter = (name: string, help: string, labelNames: string[]): Counter =>
      new Counter({ name, help, labelNames, registers });
    this.#snapshotBytes = counter('quorate_snapshot_bytes_total', 'Of snapshots that took effect.', ['from']);
    this.#leaderChanges = counter(
      'quorate_leader_changes_total',
      'Times that a replica here heard of another leader of its partition, or lost it.',
      ['what'],
    );
    // Both are there before the first.
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

  entryApplied({ queueMillis, commitMillis, applyMillis }: EntryTiming): void {
    this.#queueSeconds.observe(queueMillis / 1_000);
    this.#commitSeconds.observe(commitMillis / 1_000);
    this.#applySeconds.observe(applyMillis / 1_000);
  }

  leaderChanged(leader: NodeId): void {
    this.#leaderChanges.inc({ what: leader === NO_NODE ? 'lost' : 'elected' });
  }

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
    help: 'Always 1: which version of quorate runs here, on which Node.js.',
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
    'Entries that are committed and not applied here, of the group with most of them.',
    most(({ commit, applied }) => commit - applied),
    registers,
  );
  gauge(
    'quorate_replication_lag_entries',
    'Entries that a member lacks, of the groups led here: of the member that lacks most.',
    most(({ role, match, lastIndex }) =>
      role === 'leader' ? Math.max(0, ...[...match.values()].map((index) => lastIndex - index)) : 0,
    ),
    registers,
  );
  gauge(
    'quorate_groups_without_leader',
    'Groups of this node whose leader it does not know, group 0 among them.',
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
    help: 'Connections of clients, by door.',
    labelNames: ['door'],
    registers,
    async collect() {
      for (const [door, count] of await connections()) open.set({ door }, count);
    },
  });
  gauge('quorate_peer_connections', 'Nodes that this one is connected with, both ways.', peers, registers);
  gauge('quorate_disk_bytes', 'What the database of this node takes on disk.', diskBytes, registers);
  gauge('quorate_disk_free_bytes', 'What may still be written to that disk.', diskFreeBytes, registers);
  gauge(
    'quorate_disk_free_floor_bytes',
    'With less room than that, others lead, and in the end requests are refused.',
    freeFloorBytes,
    registers,
  );
  const slow: Counter = new Counter({
    name: 'quorate_slow_decisions_total',
    help: 'Entries and timed answers that took long; the log tells of a few of them where the time went.',
    registers,
    collect() {
      slow.reset();
      slow.inc(slowDecisions());
    },
  });
}
