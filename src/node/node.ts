/**
 * The composition root: builds one running node from a configuration and a directory. All clocks, timers, sockets
 * and randomness of a node enter here.
 */
import { randomInt } from 'node:crypto';
import { totalmem } from 'node:os';
import { performance } from 'node:perf_hooks';
import { getHeapStatistics } from 'node:v8';
import type { Logger } from 'pino';
import { RolledBackError } from '../../raft/errors.ts';
import { MULTI_RAFT_DEFAULTS } from '../../raft/driver/multi-raft.ts';
import type { LogStore } from '../../raft/driver/store.ts';
import { NO_NODE, type NodeId } from '../../raft/types.ts';
import { freeBytes, isLowDisk } from '../../storage/free-space.ts';
import { openStore } from '../../storage/open-store.ts';
import type { FrontDoor, NodeBehindDoor } from '../api/front-door.ts';
import { factsDigest, factsOf } from '../config/cluster-facts.ts';
import { ClusterView } from './cluster-view.ts';
import { type ClusterConfig, ConfigError } from '../config/config.ts';
import { DoorClock } from './door-clock.ts';
import { HttpDoor } from '../http/http-door.ts';
import { MemberCache } from './member-cache.ts';
import { Admission } from '../meta/admission.ts';
import { Metrics } from './metrics.ts';
import { NodeCore } from './node-core.ts';
import type { Clocks } from './node-core-init.ts';
import { NodeReadiness } from './readiness.ts';
import { stopLimits, takeLeave } from './stop.ts';
import { ObservedStore } from './observed-store.ts';
import { loadHash32 } from '../partition/hash.ts';
import { type Memory, snapshotEveryBytes, stateBytesDefault } from '../partition/node-budget.ts';
import { addressesToSay, configuredPeers, currentPeers } from './peer-addresses.ts';
import { encodeNodeReport } from '../wire/node-report.ts';
import { rulesInForce, RulesWatch } from './rules-in-force.ts';
import { TcpTransport } from '../transport/tcp-transport.ts';

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

const STARTING = { kind: 'unavailable', reason: 'starting', proposed: false } as const;
const REPORT_MILLIS = 500;
const FREE_SPACE_CHECK_MILLIS = 1_000;

interface NodeParts {
  readonly core: NodeCore;
  readonly doors: readonly FrontDoor[];
  readonly transport: TcpTransport;
  readonly store: LogStore;
  readonly doorClock: DoorClock;
  readonly timers: readonly NodeJS.Timeout[];
  readonly deadlineMillis: number;
  /** From now on it says that it stops. */
  readonly stopping: () => void;
}

export class QuorateNode {
  readonly core: NodeCore;
  readonly #parts: NodeParts;
  #closing: Promise<void> | undefined;
  #ending: Promise<void> | undefined;

  constructor(parts: NodeParts) {
    this.core = parts.core;
    this.#parts = parts;
  }

  /** Stops gracefully: others lead first, open requests are answered, the disk is left closed. Safe to call twice. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    const { core, doors, deadlineMillis, stopping } = this.#parts;
    stopping();
    await takeLeave(core, doors, stopLimits(deadlineMillis));
    await this.abort();
  }

  /** Ends at once, and leaves the disk closed: nothing is handed over, who waits learns nothing. Safe to call twice. */
  abort(): Promise<void> {
    this.#ending ??= end(this.#parts);
    return this.#ending;
  }
}

async function end({ core, doors, transport, store, doorClock, timers }: NodeParts): Promise<void> {
  for (const timer of timers) clearInterval(timer);
  doorClock.close();
  core.raft.stop();
  core.router.close();
  await Promise.all([slam(doors), transport.close()]);
  await store.close();
}

/** Closes the doors, whoever is on his way through. */
async function slam(doors: readonly FrontDoor[]): Promise<void> {
  const closed = Promise.all(doors.map(async (door) => door.close()));
  for (const door of doors) door.closeAllConnections();
  await closed;
}

/**
 * Opens the disk, listens, loads what is on the disk and joins the peers. While it loads, HTTP says how far it is.
 * Resolves when it takes part; leaders may still be elected then.
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
        core.receive(from, type, payload);
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

  const readiness = new NodeReadiness({
    groups: 1 + config.partitions,
    isFounder: config.founders.some(({ id }) => id === nodeId),
  });
  const doorClock = new DoorClock({ monotonicMillis });
  const metrics = new Metrics({
    leaderships: () => readiness.core?.raft.leaderships ?? 0,
    openRequests: () => readiness.core?.router.openCount ?? 0,
    waitingProposals: () =>
      [...(readiness.core?.partitions.values() ?? [])].reduce(
        (sum, { waitingCount }) => sum + waitingCount,
        0,
      ),
    stateBytes: () => readiness.core?.capacity.stateBytes ?? 0,
    stateBytesMax: () => readiness.core?.capacity.stateBytesMax ?? 0,
    refusedAtCapacity: () => readiness.core?.capacity.refused ?? 0,
    isClockUnfit: () => readiness.core?.clock.verdict.fit === false,
    clockRatesPpm: () => readiness.core?.clock.estimates() ?? [],
  });
  const view = new ClusterView(
    () => ({
      ...(readiness.core?.meta.state ?? { nodes: config.nodes, version: 0, settledVersion: 0 }),
      rules: rulesInForce(readiness.core?.partitions.values() ?? []),
      replicasOf: (partition) => readiness.core?.placement.replicasOf(partition) ?? [],
      self: {
        id: nodeId,
        standing: readiness.core?.standing ?? { state: 'waiting' },
        refusals: readiness.core?.refusals ?? new Map(),
      },
    }),
    config.partitions,
    monotonicMillis,
  );
  const behindDoor: NodeBehindDoor = {
    allow(request, done) {
      if (readiness.core === undefined) done(STARTING, 0);
      else readiness.core.allow(request, done);
    },
    readiness: () => readiness.current,
    wantsNoClients: () => readiness.wantsNoClients,
    cluster() {
      if (readiness.core !== undefined) view.update(readiness.core.report(process.pid));
      return view.report();
    },
    changeNodes(change, done) {
      if (readiness.core === undefined) done({ ok: false, reason: 'notLeader', leader: NO_NODE });
      else readiness.core.changeNodes(change, done);
    },
  };
  const doors: readonly FrontDoor[] = [
    new HttpDoor({
      node: behindDoor,
      address: self.http,
      metrics: () => metrics.render(),
      observe: (status, startedMillis) =>
        metrics.observeRequest(status, (monotonicMillis() - startedMillis) / 1000),
      accepted: () => doorClock.accepted(),
      monotonicMillis,
      wallMillis,
      logger,
    }),
  ];

  /** Nothing but the doors runs yet. */
  const giveUp = async (): Promise<void> => {
    doorClock.close();
    await Promise.all([slam(doors), transport.close()]);
    await store.close();
  };

  const memory = memoryLimits();
  const everyBytes =
    config.snapshotEveryBytes ??
    snapshotEveryBytes(memory, config.partitions + 1, MULTI_RAFT_DEFAULTS.snapshotEveryBytes);
  const observed = new ObservedStore(store, {
    monotonicMillis,
    wrote: (seconds) => metrics.observeWrite(seconds),
    snapshotKept: (snapshot) => logger.info(snapshot, 'snapshot kept'),
  });
  let core: NodeCore;
  try {
    // First of all, so that everybody can see how far this node is.
    for (const door of doors) await door.listen();
    core = await NodeCore.load({
      config,
      nodeId,
      store: observed,
      hash: await loadHash32(),
      clocks,
      random: (bound) => randomInt(bound),
      doorMillis: () => doorClock.nowMillis(),
      defer: setImmediate,
      send: (to, type, payload) => transport.send(to, type, payload),
      isConnected: (peer) => transport.isConnectedBothWays(peer),
      loaded: (groups, of) => readiness.loading(groups, of),
      reported: (peer) => view.update(peer),
      leaderChanged(partition, leader) {
        logger.info({ partition, leader }, leader === NO_NODE ? 'leader lost' : 'leader elected');
      },
      nodesChanged(state, metaMembers) {
        const { nodes, version, settledVersion } = state;
        logger.info({ nodes: nodes.map(({ id }) => id), version, settledVersion }, 'nodes of the cluster');
        transport.recheck();
        transport.setPeers(currentPeers(state, metaMembers, config));
        memberCache.update(state);
      },
      excluded({ state, reason }) {
        logger[state === 'removed' ? 'warn' : 'error']({ standing: state }, reason);
        if (state === 'removed') memberCache.removed();
        transport.leave();
      },
      admission,
      snapshotRefused: (group, error) =>
        logger.warn({ group, err: error }, 'a snapshot of a leader is unsound'),
      refusingAtCapacity: (isRefusing, report) =>
        logger.warn(report, isRefusing ? 'at capacity: new users are refused' : 'nobody is refused any more'),
      clockJudged(verdict) {
        if (verdict.fit) logger.info("this node's clock runs at the speed of the others': it may lead again");
        else
          logger.warn(
            { direction: verdict.direction, atLeastPpm: Math.round(verdict.atLeastPpm) },
            "this node's clock runs too fast or too slow against those of a majority: it gives up its leaderships",
          );
      },
      fatal,
      raft: { snapshotEveryBytes: everyBytes, keepLogBytes: Math.floor(everyBytes / 4) },
    });
    core.limitState(config.stateBytesMax ?? stateBytesDefault(memory));
  } catch (error) {
    await giveUp();
    throw error;
  }
  readiness.started(core);
  try {
    await transport.start();
  } catch (error) {
    core.raft.stop();
    await giveUp();
    throw error;
  }
  const { snapshotsLoaded } = observed;
  logger.info(
    { http: self.http, peer: self.peer, partitions: core.partitions.size, snapshotsLoaded },
    'node is up',
  );

  const rulesWatch = new RulesWatch(config.rules, ({ version }) =>
    logger.warn(
      { inForce: version, ofFile: config.rules.version },
      `the rules of cluster.json are not in force, and will not be: raise its rules.version above ${version}`,
    ),
  );
  const report = (): void => {
    rulesWatch.look(core.partitions.values());
    memberCache.rulesInForce(rulesInForce(core.partitions.values()));
    const own = core.report(process.pid);
    view.update(own);
    const payload = encodeNodeReport(own);
    for (const peer of transport.peers) transport.send(peer, 'status', payload);
  };

  let isShortOfSpace = false;
  const checkFreeSpace = async (): Promise<void> => {
    const isLow = isLowDisk(await freeBytes(init.dataDirectory), config.freeFloorBytes);
    if (isLow !== isShortOfSpace)
      logger.warn({ isLow, floorBytes: config.freeFloorBytes }, 'free disk space');
    isShortOfSpace = isLow;
    core.refuseProposals(isLow);
  };

  const timers = [
    setInterval(() => core.tick(), timing.tickMillis),
    setInterval(report, REPORT_MILLIS),
    setInterval(() => void checkFreeSpace().catch(fatal), FREE_SPACE_CHECK_MILLIS),
  ];
  return new QuorateNode({
    core,
    doors,
    transport,
    store,
    doorClock,
    timers,
    deadlineMillis: timing.requestDeadlineMillis,
    stopping: () => readiness.stopping(),
  });
}

function memoryLimits(): Memory {
  // 0, or more than there is, where no control group sets a limit.
  const constrained = process.constrainedMemory();
  const total = totalmem();
  return {
    heapBytesMax: getHeapStatistics().heap_size_limit,
    memoryBytes: constrained > 0 && constrained < total ? constrained : total,
  };
}
