/**
 * Opens and creates the parts of a node before its core is loaded: disk, transport, listeners and monitoring.
 * Nothing listens yet.
 */
import { performance } from 'node:perf_hooks';
import type { LogStore } from '../../raft/driver/store.ts';
import { RolledBackError } from '../../raft/errors.ts';
import type { LevelStore } from '../../storage/level-store.ts';
import { openStore } from '../../storage/open-store.ts';
import type { ApiListener } from '../api/api-listener.ts';
import type { HttpListener } from '../http/http-listener.ts';
import type { NodeAddress } from '../api/node-address.ts';
import { settleRecord } from '../backup/recovered-record.ts';
import { factsDigest, factsOf } from '../config/cluster-facts.ts';
import { type ClusterConfig, ConfigError } from '../config/config.ts';
import { Admission } from '../meta/admission.ts';
import { LoadShedder, ROUND_MILLIS_MAX } from '../shedding/load-shedder.ts';
import { TcpTransport } from '../transport/tcp-transport.ts';
import { type Access, accessOf } from './access.ts';
import { nodeApi, viewOf } from './node-api.ts';
import type { ClusterView } from './cluster-view.ts';
import { ListenerClock } from './listener-clock.ts';
import { ListenerUsage } from './listener-usage.ts';
import { grpcListener, httpListener, respListener } from './listeners.ts';
import { EventTurn } from './event-turn.ts';
import { LiveSettings } from './live-settings.ts';
import { NodeMonitor } from './node-monitor.ts';
import { NodePace } from './node-pace.ts';
import { type KnownTokens, MemberCache, readKnownMembers } from './member-cache.ts';
import type { Metrics } from './metrics.ts';
import type { Clocks } from '../api/clocks.ts';
import { metricsOf } from './node-metrics.ts';
import { ObservedStore } from './observed-store.ts';
import { addressesToSay, configuredPeers, listeningAt } from './peer-addresses.ts';
import { NodeReadiness } from './readiness.ts';
import { SlowDecisions } from './slow-decisions.ts';
import type { Logger } from 'pino';
import { LoopRounds } from './loop-rounds.ts';
import { OPEN_REQUESTS_MAX } from './routing.ts';
import type { NodeId } from '../../raft/types.ts';
import type { NodeTls } from '../tls/node-tls.ts';

/** The arguments of `startNode`. */
export interface NodeInit {
  readonly config: ClusterConfig;
  readonly nodeId: NodeId;
  /** Must have been initialised with `bootstrapStore`. */
  readonly dataDirectory: string;
  readonly logger: Logger;
  /** Storage failed or an invariant broke. The node has stopped speaking; the process must exit. */
  readonly onFatal: (error: unknown) => void;
  /** The certificates, closed by the caller. Absent: connections are not encrypted. */
  readonly tls?: NodeTls;
  /** Version of the package. */
  readonly version?: string;
  /** Host to listen on. Absent: the addresses at which others find the node. */
  readonly listen?: string;
  readonly clocks?: Clocks;
  /** Wraps the store, for tests of failing disks. */
  readonly wrapStore?: (store: LogStore) => LogStore;
}

/** The parts of a node. */
export interface NodeParts {
  readonly init: NodeInit;
  /** The addresses of this node. */
  readonly self: NodeAddress;
  readonly clocks: Clocks;
  readonly store: ObservedStore;
  /** Stops the node for good after an error; only the first one counts. */
  readonly fatal: (error: unknown) => void;
  readonly admission: Admission;
  readonly memberCache: MemberCache;
  readonly transport: TcpTransport;
  readonly turn: EventTurn;
  readonly readiness: NodeReadiness;
  readonly view: ClusterView;
  readonly listenerClock: ListenerClock;
  readonly usage: ListenerUsage;
  readonly monitor: NodeMonitor;
  readonly pace: NodePace;
  readonly access: Access;
  readonly metrics: Metrics;
  readonly slow: SlowDecisions;
  readonly shedder: LoadShedder;
  readonly listeners: readonly ApiListener[];
  readonly http: HttpListener;
  readonly settings: LiveSettings;
}

const SYSTEM_CLOCKS: Clocks = {
  monotonicMillis: () => performance.now(),
  wallMillis: () => Date.now(),
};

/** Logs at every start which groups were recovered here without their quorum. */
async function warnOfRecoveries({ dataDirectory, logger }: NodeInit, store: LevelStore): Promise<void> {
  for (const recovered of await settleRecord(dataDirectory, (group) => store.termOf(group)))
    logger.warn(
      { recovered },
      'a group was recovered here without its quorum: entries that only the lost nodes had are lost',
    );
}

/**
 * The addresses of this node. @throws ConfigError if the node is not in the configuration, or TLS is configured and
 * no certificates were opened
 */
function ownAddress({ config, nodeId, tls }: NodeInit): NodeAddress {
  const self = config.nodes.find((node) => node.id === nodeId);
  if (self === undefined) throw new ConfigError('nodeId', `${nodeId} is not in nodes`);
  if (config.tls !== undefined && tls === undefined)
    throw new ConfigError('tls', 'is set, and the node was started without its certificates');
  return self;
}

/** Opens the parts. @throws the errors of `openStore`, if the directory must not be used */
export async function openParts(init: NodeInit): Promise<NodeParts> {
  const { config, nodeId, dataDirectory, logger, clocks = SYSTEM_CLOCKS } = init;
  const self = ownAddress(init);
  const at = init.listen === undefined ? self : listeningAt(self, init.listen);
  const opened = await openStore(dataDirectory, { nodeId, facts: factsOf(config) });
  await warnOfRecoveries(init, opened);
  const admission = newAdmission(init, self, opened.identity);
  const { shedder, turn } = newShedding(logger, clocks);
  const transport = newTransport(init, { at, admission, turn });
  const readiness = new NodeReadiness({
    groups: 1 + config.partitions,
    isFounder: config.founders.some(({ id }) => id === nodeId),
  });
  const view = viewOf(init, readiness, clocks);
  const listenerClock = new ListenerClock(clocks);
  const settings = new LiveSettings(config);
  const usage = new ListenerUsage(clocks);
  const monitor = new NodeMonitor({ readiness, view, usage, clocks });
  const { tokens: tokensBefore } = (await readKnownMembers(dataDirectory)) ?? {};
  const access = accessBehind(init, readiness, tokensBefore);
  const { monotonicMillis } = clocks;
  const pace = new NodePace(usage, monotonicMillis);
  const slow = new SlowDecisions({ logger, monotonicMillis });
  const counted = { readiness, usage, access, slow, shedder };
  const behind = nodeApi(init, self, { ...counted, view, pace });
  const resp = respListener(init, at.resp, { node: behind, listenerClock, turn, ...clocks });
  const grpc = await grpcListener(init, at.grpc, { node: behind, listenerClock, settings, ...clocks });
  const further = { ...(resp !== undefined && { resp }), ...(grpc !== undefined && { grpc }) };
  const listeners: Record<string, ApiListener> = { ...further };
  const metrics = metricsOf(init, { ...counted, resp, grpc, transport, listeners, settings });
  const http = httpListener(
    init,
    { address: at.http, advertisedHost: self.http.host },
    { node: behind, monitor, listenerClock, metrics, settings, ...clocks },
  );
  listeners['http'] = http;
  const store = observed(init, opened, { metrics, slow, pace, monotonicMillis });
  const fatal = fatalOnce(init, (reason) => opened.condemn(reason));
  const unwritten = (error: unknown): void =>
    logger.warn({ err: error }, 'cannot write the known members to members.json');
  const memberCache = new MemberCache(dataDirectory, unwritten, tokensBefore);
  return {
    init,
    self,
    clocks,
    store,
    fatal,
    admission,
    memberCache,
    transport,
    turn,
    readiness,
    view,
    listenerClock,
    usage,
    monitor,
    pace,
    access,
    metrics,
    slow,
    shedder,
    listeners: [http, ...Object.values(further)],
    http,
    settings,
  };
}

function newAdmission(
  { config, nodeId }: NodeInit,
  self: NodeAddress,
  { incarnation }: { readonly incarnation: string },
): Admission {
  return new Admission({
    nodeId,
    incarnation,
    facts: factsDigest(factsOf(config)),
    founders: config.founders,
    addresses: addressesToSay(self),
  });
}

function newTransport(
  { config, nodeId, logger, tls }: NodeInit,
  { at, admission, turn }: Pick<NodeParts, 'admission' | 'turn'> & { readonly at: NodeAddress },
): TcpTransport {
  return new TcpTransport({
    nodeId,
    clusterId: config.clusterId,
    listen: at.peer,
    peers: configuredPeers(config),
    gate: admission,
    ...(tls !== undefined && { tls: tls.peers }),
    logger,
    random: Math.random,
    atTurnEnd: (flush) => turn.at('send', flush),
  });
}

function observed(
  { wrapStore, logger }: NodeInit,
  opened: LogStore,
  watchers: Pick<NodeParts, 'metrics' | 'slow' | 'pace'> & Pick<Clocks, 'monotonicMillis'>,
): ObservedStore {
  const { metrics, slow, pace, monotonicMillis } = watchers;
  return new ObservedStore(wrapStore?.(opened) ?? opened, {
    monotonicMillis,
    wrote(seconds) {
      metrics.observeWrite(seconds);
      slow.wrote(seconds);
      pace.wrote(seconds);
    },
    snapshotKept(snapshot) {
      metrics.operation.snapshotKept(snapshot);
      logger.info(snapshot, 'snapshot kept');
    },
  });
}

/** @param before the last known tokens: their version, and whether every request needed one */
function accessBehind(
  { config }: NodeInit,
  readiness: NodeReadiness,
  before: KnownTokens = { version: 0, isClosed: false },
): Access {
  return accessOf({
    configured: config.tokens ?? [],
    tokens: () => readiness.core?.tokens,
    isBehind: () => before.isClosed && (readiness.core?.tokens.version ?? 0) < before.version,
  });
}

/** Closes everything that `openParts` opened. Requests that are still open at a listener are dropped. */
export async function closeParts({ listenerClock, listeners, transport, store }: NodeParts): Promise<void> {
  listenerClock.close();
  const closed = Promise.all(listeners.map(async (listener) => listener.close()));
  for (const listener of listeners) listener.closeAllConnections();
  await Promise.all([closed, transport.close()]);
  await store.close();
}

/** @param condemn marks the store as unusable; without that the node would take part again after a restart */
function fatalOnce(
  { logger, onFatal }: NodeInit,
  condemn: (reason: string) => Promise<void>,
): (error: unknown) => void {
  const condemned = async (error: RolledBackError): Promise<void> => {
    await condemn(error.message);
    onFatal(error);
  };
  let isBroken = false;
  return (error) => {
    if (isBroken) return;
    isBroken = true;
    logger.fatal({ err: error }, 'this node stops: its disk or its state can no longer be trusted');
    if (error instanceof RolledBackError) void condemned(error);
    else onFatal(error);
  };
}

/** Load shedding, and the turns that it measures. */
interface Shedding {
  readonly shedder: LoadShedder;
  /** The turns of the node; each is measured. */
  readonly turn: EventTurn;
}

/** Connects the load shedding of a node to its event loop and its log. */
function newShedding(logger: Logger, { monotonicMillis }: Clocks): Shedding {
  const shedder = new LoadShedder({
    monotonicMillis,
    openMax: OPEN_REQUESTS_MAX,
    changed: (isShedding, report) =>
      logger.warn(report, isShedding ? 'overloaded: requests are refused' : 'no longer overloaded'),
  });
  const rounds = new LoopRounds({
    monotonicMillis,
    shortMillis: ROUND_MILLIS_MAX,
    rounds: (busyMillis, idleMillis) => shedder.rounds(busyMillis, idleMillis),
  });
  return { shedder, turn: new EventTurn(() => rounds.turn()) };
}
