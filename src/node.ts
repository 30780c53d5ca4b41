/**
 * The composition root: builds one running node from a configuration and a directory. All clocks, timers and
 * randomness of a node enter here.
 */
import { randomInt } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import { RAFT_DEFAULTS } from '../raft/core-state.ts';
import { MULTI_RAFT_DEFAULTS, MultiRaft, type MultiRaftOptions } from '../raft/multi-raft.ts';
import type { LogStore } from '../raft/store.ts';
import type { NodeId } from '../raft/types.ts';
import { belowFloor, freeBytes } from '../storage/free-space.ts';
import { openStore } from '../storage/open-store.ts';
import { FORMAT_VERSION } from '../storage/records.ts';
import { ClusterView, decodeReport, encodeReport, reportOf } from './cluster-view.ts';
import { type ClusterConfig, ConfigError } from './config.ts';
import { createHttpServer } from './http/server.ts';
import { GroupClock } from './limiter/group-clock.ts';
import { Metrics } from './metrics.ts';
import { loadHash32 } from './partition/hash.ts';
import { Partition, PARTITION_DEFAULTS } from './partition/partition.ts';
import { groupOfPartition, ringPlacement } from './partition/placement.ts';
import { Forwarder } from './router/forwarder.ts';
import { Router } from './router/router.ts';
import { decodePeerMessages, encodePeerMessages } from './transport/peer-codec.ts';
import { TcpTransport } from './transport/tcp-transport.ts';

export interface Clocks {
  /** Never runs back; fractions of a millisecond. */
  readonly monotonicMillis: () => number;
  /** Milliseconds since 1970. Used to start group time, to refuse timestamps from the future, and in headers. */
  readonly wallMillis: () => number;
}

export interface NodeInit {
  readonly config: ClusterConfig;
  readonly nodeId: NodeId;
  /** Must have been initialised with `bootstrapStore`. */
  readonly dataDirectory: string;
  readonly logger: Logger;
  /** Storage failed or an invariant broke. The node has stopped speaking; the process must exit. */
  readonly onFatal: (error: unknown) => void;
  readonly clocks?: Clocks;
  readonly raft?: Partial<MultiRaftOptions>;
  /** Puts something between the node and its disk, for tests of failing disks. */
  readonly wrapStore?: (store: LogStore) => LogStore;
}

/** Groups that found no successor by then elect one themselves. */
const HAND_OVER_MILLIS_MAX = 300;
const REPORT_MILLIS = 500;
const FREE_SPACE_CHECK_MILLIS = 1_000;
const OPEN_REQUESTS_MAX = 65_536;

export class QuorateNode {
  readonly id: NodeId;
  readonly router: Router;
  readonly raft: MultiRaft;
  readonly partitions: ReadonlyMap<number, Partition>;
  readonly #http: FastifyInstance;
  readonly #transport: TcpTransport;
  readonly #store: LogStore;
  readonly #timers: readonly NodeJS.Timeout[];
  #closing: Promise<void> | undefined;

  constructor(parts: {
    id: NodeId;
    router: Router;
    raft: MultiRaft;
    partitions: ReadonlyMap<number, Partition>;
    http: FastifyInstance;
    transport: TcpTransport;
    store: LogStore;
    timers: readonly NodeJS.Timeout[];
  }) {
    this.id = parts.id;
    this.router = parts.router;
    this.raft = parts.raft;
    this.partitions = parts.partitions;
    this.#http = parts.http;
    this.#transport = parts.transport;
    this.#store = parts.store;
    this.#timers = parts.timers;
  }

  /** Stops gracefully: open requests are answered, the disk is left closed. Safe to call twice. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    // Successors first, so that the other nodes hardly notice.
    this.raft.handOver();
    for (let waited = 0; this.raft.leaderships > 0 && waited < HAND_OVER_MILLIS_MAX; waited += 10)
      await delay(10);
    const closed = this.#http.close();
    this.router.close();
    await closed;
    for (const timer of this.#timers) clearInterval(timer);
    this.raft.stop();
    await this.#transport.close();
    await this.#store.close();
  }
}

/**
 * Opens the disk, joins the peers and listens. Resolves when HTTP answers; leaders may still be elected then.
 *
 * @throws what `openStore` throws if the directory must not be used, or the error of `listen`
 */
export async function startNode(init: NodeInit): Promise<QuorateNode> {
  const { config, nodeId, logger } = init;
  const { timing } = config;
  const self = config.nodes.find((node) => node.id === nodeId);
  if (self === undefined) throw new ConfigError('nodeId', `${nodeId} is not in nodes`);
  const clocks: Clocks = init.clocks ?? {
    monotonicMillis: () => performance.now(),
    wallMillis: () => Date.now(),
  };
  const { monotonicMillis, wallMillis } = clocks;
  const hash = await loadHash32();
  const placement = ringPlacement(
    config.nodes.map((node) => node.id),
    config.partitions,
    config.replicas,
    hash,
  );
  const identity = { clusterId: config.clusterId, nodeId, formatVersion: FORMAT_VERSION };
  const opened = await openStore(init.dataDirectory, identity);
  const store = init.wrapStore?.(opened) ?? opened;

  let fatalError: unknown;
  const fatal = (error: unknown): void => {
    if (fatalError !== undefined) return;
    fatalError = error;
    logger.fatal({ err: error }, 'this node stops: its disk or its state can no longer be trusted');
    init.onFatal(error);
  };

  const partitions = new Map<number, Partition>();
  const peers = new Map(config.nodes.map((node) => [node.id, node.peer]));
  const view = new ClusterView(config.nodes, placement, monotonicMillis);
  const transport: TcpTransport = new TcpTransport({
    nodeId,
    clusterId: config.clusterId,
    listen: self.peer,
    peers,
    logger,
    random: Math.random,
    handlers: {
      onFrame(from, type, payload) {
        switch (type) {
          case 'peerMessages':
            raft.receive(decodePeerMessages(payload, from, nodeId));
            return;
          case 'requests':
            forwarder.receiveRequests(from, payload);
            return;
          case 'answers':
            forwarder.receiveAnswers(payload);
            return;
          case 'status':
            view.update(decodeReport(from, payload));
            return;
          case 'hello':
            return;
        }
      },
      onPeerLost(peer) {
        raft.peerLost(peer);
        view.lost(peer);
      },
      onPeerConnected: () => report(),
      onPeerDisconnected(peer) {
        forwarder.peerDisconnected(peer);
        router.peerDisconnected(peer);
      },
    },
  });

  const metrics = new Metrics({
    leaderships: () => raft.leaderships,
    openRequests: () => router.openCount,
    waitingProposals: () =>
      [...partitions.values()].reduce((sum, partition) => sum + partition.waitingCount, 0),
  });

  const raft: MultiRaft = new MultiRaft({
    id: nodeId,
    store: timedStore(store, monotonicMillis, metrics),
    random: (bound) => randomInt(bound),
    options: {
      ...MULTI_RAFT_DEFAULTS,
      raft: {
        ...RAFT_DEFAULTS,
        heartbeatTicks: Math.ceil(timing.heartbeatMillis / timing.tickMillis),
        electionTicks: Math.ceil(timing.electionMillis / timing.tickMillis),
      },
      ...init.raft,
    },
    defer: setImmediate,
    send(to, messages) {
      for (const payload of encodePeerMessages(messages)) transport.send(to, 'peerMessages', payload);
    },
    fatal,
  });

  const forwarder = new Forwarder({
    partitions,
    monotonicMillis,
    send: (to, type, payload) => transport.send(to, type, payload),
    defer: setImmediate,
    firstId: randomInt(2 ** 47),
  });

  const router: Router = new Router({
    nodeId,
    placement,
    partitions,
    forwarder,
    isConnected: (node) => transport.isConnected(node),
    hash,
    monotonicMillis,
    deadlineMillis: timing.requestDeadlineMillis,
    openMax: OPEN_REQUESTS_MAX,
  });

  const leaderChanged = (partition: number, leader: NodeId): void => {
    router.leaderChanged(partition, leader);
    logger.info({ partition, leader }, leader === 0 ? 'leader lost' : 'leader elected');
  };

  for (let partition = 0; partition < config.partitions; partition += 1) {
    const replicas = placement.replicasOf(partition);
    if (!replicas.includes(nodeId)) continue;
    const group = groupOfPartition(partition);
    const app = new Partition({
      partition,
      nodeId,
      clock: new GroupClock(monotonicMillis, wallMillis),
      options: PARTITION_DEFAULTS,
      monotonicMillis,
      wallMillis,
      ruleTable: config.rules,
      requestProposal: () => raft.requestProposal(group),
      leaderChanged,
    });
    partitions.set(partition, app);
    raft.addGroup({
      group,
      voters: replicas,
      preferredLeader: replicas[0] ?? nodeId,
      app,
      stored: await store.load(group),
    });
  }

  const report = (): void => {
    const reports = [...partitions.keys()].flatMap((partition) => {
      const status = raft.status(groupOfPartition(partition));
      return status === undefined ? [] : [reportOf(partition, status)];
    });
    const own = { node: nodeId, pid: process.pid, partitions: reports };
    view.update(own);
    const payload = encodeReport(own);
    for (const peer of peers.keys()) if (peer !== nodeId) transport.send(peer, 'status', payload);
  };

  let isShortOfSpace = false;
  const checkFreeSpace = async (): Promise<void> => {
    const isLow = belowFloor(await freeBytes(init.dataDirectory), config.freeFloorBytes);
    if (isLow !== isShortOfSpace)
      logger.warn({ isLow, floorBytes: config.freeFloorBytes }, 'free disk space');
    isShortOfSpace = isLow;
    for (const partition of partitions.values()) partition.refuseProposals(isLow);
  };

  const http = createHttpServer({
    allow: (request, done) => router.allow(request, done),
    isReady: () => [...partitions.values()].every((partition) => partition.leader !== 0),
    cluster() {
      report();
      return view.toJSON();
    },
    metrics: () => metrics.render(),
    observe: (status, startedMillis) =>
      metrics.observeRequest(status, (monotonicMillis() - startedMillis) / 1000),
    monotonicMillis,
    wallMillis,
    logger,
  });

  // HTTP first: once the peers hear of this node, it answers.
  await http.listen({ host: self.http.host, port: self.http.port });
  await transport.start();
  logger.info({ http: self.http, peer: self.peer, partitions: partitions.size }, 'node is up');

  const timers = [
    setInterval(() => {
      raft.tick();
      router.tick();
      forwarder.tick();
    }, timing.tickMillis),
    setInterval(report, REPORT_MILLIS),
    setInterval(() => void checkFreeSpace().catch(fatal), FREE_SPACE_CHECK_MILLIS),
  ];
  return new QuorateNode({ id: nodeId, router, raft, partitions, http, transport, store, timers });
}

/** The same store, with the time of each write observed. */
function timedStore(store: LogStore, monotonicMillis: () => number, metrics: Metrics): LogStore {
  return {
    load: (group) => store.load(group),
    write(writes, done) {
      const startedMillis = monotonicMillis();
      store.write(writes, (error) => {
        metrics.observeWrite((monotonicMillis() - startedMillis) / 1000);
        done(error);
      });
    },
    readSnapshotChunk: (group, index, chunk) => store.readSnapshotChunk(group, index, chunk),
    close: () => store.close(),
  };
}
