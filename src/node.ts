/**
 * The composition root: builds one running node from a configuration and a directory. All clocks, timers, sockets
 * and randomness of a node enter here.
 */
import { randomInt } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import { RolledBackError } from '../raft/errors.ts';
import type { LogStore } from '../raft/store.ts';
import type { NodeId } from '../raft/types.ts';
import { belowFloor, freeBytes } from '../storage/free-space.ts';
import { openStore } from '../storage/open-store.ts';
import { factsDigest, factsOf } from './cluster-facts.ts';
import { ClusterView, decodeReport, encodeReport } from './cluster-view.ts';
import { type ClusterConfig, ConfigError } from './config.ts';
import { createHttpServer } from './http/server.ts';
import { MemberCache } from './member-cache.ts';
import { Admission } from './meta/admission.ts';
import { Metrics } from './metrics.ts';
import { type Clocks, isCoreFrame, NodeCore } from './node-core.ts';
import { loadHash32 } from './partition/hash.ts';
import { addressesToSay, configuredPeers, currentPeers } from './peer-addresses.ts';
import { FrameError } from './transport/frame.ts';
import { TcpTransport } from './transport/tcp-transport.ts';

export interface NodeInit {
  readonly config: ClusterConfig;
  readonly nodeId: NodeId;
  /** Must have been initialised with `bootstrapStore`. */
  readonly dataDirectory: string;
  readonly logger: Logger;
  /** Storage failed or an invariant broke. The node has stopped speaking; the process must exit. */
  readonly onFatal: (error: unknown) => void;
  readonly clocks?: Clocks;
  /** Puts something between the node and its disk, for tests of failing disks. */
  readonly wrapStore?: (store: LogStore) => LogStore;
}

/** Groups that found no successor by then elect one themselves. */
const HAND_OVER_MILLIS_MAX = 300;
const OPEN_CONNECTIONS_MILLIS_MAX = 500;
const REPORT_MILLIS = 500;
const FREE_SPACE_CHECK_MILLIS = 1_000;

export class QuorateNode {
  readonly core: NodeCore;
  readonly #http: FastifyInstance;
  readonly #transport: TcpTransport;
  readonly #store: LogStore;
  readonly #timers: readonly NodeJS.Timeout[];
  #closing: Promise<void> | undefined;

  constructor(parts: {
    core: NodeCore;
    http: FastifyInstance;
    transport: TcpTransport;
    store: LogStore;
    timers: readonly NodeJS.Timeout[];
  }) {
    this.core = parts.core;
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
    const { raft, router } = this.core;
    // Successors first, so that the other nodes hardly notice.
    raft.handOver();
    for (let waited = 0; raft.leaderships > 0 && waited < HAND_OVER_MILLIS_MAX; waited += 10) await delay(10);
    const closed = this.#http.close();
    router.close();
    // A client that never finishes its request must not keep the disk from being closed.
    const insist = setTimeout(() => this.#http.server.closeAllConnections(), OPEN_CONNECTIONS_MILLIS_MAX);
    await closed;
    clearTimeout(insist);
    for (const timer of this.#timers) clearInterval(timer);
    raft.stop();
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
  const facts = factsOf(config);
  const opened = await openStore(init.dataDirectory, { nodeId, facts });
  const store = init.wrapStore?.(opened) ?? opened;

  let isBroken = false;
  const fatal = (error: unknown): void => {
    if (isBroken) return;
    isBroken = true;
    logger.fatal({ err: error }, 'this node stops: its disk or its state can no longer be trusted');
    if (error instanceof RolledBackError) void condemn(error);
    else init.onFatal(error);
  };
  /** After a restart the node would take part again until a leader speaks to it. */
  const condemn = async (error: RolledBackError): Promise<void> => {
    await opened.condemn(error.message);
    init.onFatal(error);
  };

  const admission = new Admission({
    nodeId,
    incarnation: opened.identity.incarnation,
    facts: factsDigest(facts),
    founders: config.founders,
    addresses: addressesToSay(self),
  });
  const memberCache = new MemberCache(init.dataDirectory, (error) =>
    logger.warn({ err: error }, 'cannot write what is known of the nodes'),
  );
  const transport: TcpTransport = new TcpTransport({
    nodeId,
    clusterId: config.clusterId,
    listen: self.peer,
    peers: configuredPeers(config),
    gate: admission,
    logger,
    random: Math.random,
    handlers: {
      onFrame(from, type, payload) {
        if (type === 'status') view.update(decodeReport(from.node, payload));
        else if (isCoreFrame(type)) core.receive(from, type, payload);
        else throw new FrameError(`${type} is said once, at the beginning`);
      },
      onIntroduced: (hello) => core.introduced(hello),
      onPeerLost(peer) {
        core.peerLost(peer);
        view.lost(peer);
      },
      onPeerConnected(peer) {
        core.welcomedBy(peer);
        report();
      },
      onPeerDisconnected: (peer) => core.peerDisconnected(peer),
      onRefused: (peer, refusal) => core.refusedBy(peer, refusal),
    },
  });

  const metrics = new Metrics({
    leaderships: () => core.raft.leaderships,
    openRequests: () => core.router.openCount,
    waitingProposals: () =>
      [...core.partitions.values()].reduce((sum, partition) => sum + partition.waitingCount, 0),
    isClockUnfit: () => !core.clock.verdict.fit,
    clockRatesPpm: () => core.clock.estimates(),
  });

  const core: NodeCore = await NodeCore.load({
    config,
    nodeId,
    store: timedStore(store, monotonicMillis, metrics),
    hash: await loadHash32(),
    clocks,
    random: (bound) => randomInt(bound),
    defer: setImmediate,
    send: (to, type, payload) => transport.send(to, type, payload),
    isConnected: (peer) => transport.isConnected(peer),
    leaderChanged(partition, leader) {
      logger.info({ partition, leader }, leader === 0 ? 'leader lost' : 'leader elected');
    },
    nodesChanged(state, metaMembers) {
      const { nodes, version, settledVersion } = state;
      logger.info({ nodes: nodes.map(({ id }) => id), version, settledVersion }, 'nodes of the cluster');
      transport.recheck();
      transport.setPeers(currentPeers(state, metaMembers, config));
      memberCache.update(state);
    },
    excluded({ state, reason }) {
      logger.error({ standing: state }, reason);
      if (state === 'removed') memberCache.removed();
      transport.leave();
    },
    admission,
    clockJudged(verdict) {
      if (verdict.fit) logger.info("this node's clock runs at the speed of the others': it may lead again");
      else
        logger.warn(
          { direction: verdict.direction, atLeastPpm: Math.round(verdict.atLeastPpm) },
          "this node's clock runs too fast or too slow against those of a majority: it gives up its leaderships",
        );
    },
    fatal,
  });

  const view = new ClusterView(
    () => ({
      ...(core.meta.state ?? { nodes: config.nodes, version: 0, settledVersion: 0 }),
      replicasOf: (partition) => core.placement.replicasOf(partition),
      self: { id: nodeId, standing: core.standing, refusals: core.refusals },
    }),
    config.partitions,
    monotonicMillis,
  );
  const report = (): void => {
    const own = core.report(process.pid);
    view.update(own);
    const payload = encodeReport(own);
    for (const peer of transport.peers) transport.send(peer, 'status', payload);
  };

  let isShortOfSpace = false;
  const checkFreeSpace = async (): Promise<void> => {
    const isLow = belowFloor(await freeBytes(init.dataDirectory), config.freeFloorBytes);
    if (isLow !== isShortOfSpace)
      logger.warn({ isLow, floorBytes: config.freeFloorBytes }, 'free disk space');
    isShortOfSpace = isLow;
    core.refuseProposals(isLow);
  };

  const http = createHttpServer({
    allow: (request, done) => core.allow(request, done),
    isReady: () => core.isReady,
    standing: () => core.standing,
    cluster() {
      view.update(core.report(process.pid));
      return view.toJSON();
    },
    changeNodes: (change, done) => core.changeNodes(change, done),
    metrics: () => metrics.render(),
    observe: (status, startedMillis) =>
      metrics.observeRequest(status, (monotonicMillis() - startedMillis) / 1000),
    monotonicMillis,
    wallMillis,
    logger,
  });

  // HTTP first: once the peers hear of this node, it answers.
  try {
    await http.listen({ host: self.http.host, port: self.http.port });
    await transport.start();
  } catch (error) {
    core.raft.stop();
    await Promise.all([http.close(), transport.close()]);
    await store.close();
    throw error;
  }
  logger.info({ http: self.http, peer: self.peer, partitions: core.partitions.size }, 'node is up');

  const timers = [
    setInterval(() => core.tick(), timing.tickMillis),
    setInterval(report, REPORT_MILLIS),
    setInterval(() => void checkFreeSpace().catch(fatal), FREE_SPACE_CHECK_MILLIS),
  ];
  return new QuorateNode({ core, http, transport, store, timers });
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
    get hasGarbage() {
      return store.hasGarbage;
    },
    readSnapshotChunk: (group, index, chunk) => store.readSnapshotChunk(group, index, chunk),
    close: () => store.close(),
  };
}
