/**
 * Creates the forwarder, the router and the request matching of a node, with time limits that follow from the
 * timing of its cluster.
 */
import { partitionOf } from '../partition/hash.ts';
import type { Timing } from '../config/config.ts';
import { LocalLimits, type WantedLimit } from '../limiter/local-limits.ts';
import { CurrentRuleSet } from '../matching/rule-set.ts';
import { EarlierRuleSets } from '../matching/earlier-rule-sets.ts';
import { DegradedDecisions } from '../matching/degraded-decisions.ts';
import { MatchedRequests } from '../matching/matched-requests.ts';
import type { MatchedRequestsInit } from '../matching/matched-requests-init.ts';
import type { MatchedLimit } from '../matching/matched-limit.ts';
import type { ClusterPlacement } from '../meta/cluster-placement.ts';
import type { MetaState } from '../meta/cluster-state.ts';
import type { Partition } from '../partition/partition.ts';
import { Forwarder } from '../router/forwarder.ts';
import { Router } from '../router/router.ts';
import { FIRST_ID_BOUND, type NodeCoreInit } from './node-core-init.ts';

/** The maximum number of unanswered requests of a node. */
export const OPEN_REQUESTS_MAX = 65_536;
/** Attempt numbers of two nodes never collide if their ids differ modulo this. */
const NODES_APART = 32;

/** What `newRouting` needs. */
export interface RoutingInit {
  readonly init: NodeCoreInit;
  readonly placement: ClusterPlacement;
  /** The replicas on this node. */
  readonly partitions: ReadonlyMap<number, Partition>;
  /** The state of group 0 on this node. */
  readonly state: () => MetaState | undefined;
  /** Asks the leader of the partition, unless this node is excluded. */
  readonly ask: MatchedRequestsInit['ask'];
  /** Whether the replica here will learn who leads. */
  readonly hearsOfLeaders: (partition: number) => boolean;
}

/** The request path of a node. */
export interface Routing {
  readonly forwarder: Forwarder;
  readonly router: Router;
  readonly requests: MatchedRequests;
}

/** Creates the request path. */
export function newRouting(routing: RoutingInit): Routing {
  const { init, placement, partitions, hearsOfLeaders } = routing;
  const { nodeId, config, clocks, listenerMillis, random, send, gather, isConnected, queues } = init;
  const { monotonicMillis } = clocks;
  const { electionMillis, requestDeadlineMillis, tickMillis } = config.timing;
  const silentTicksMax = silentTicksOf(config.timing);
  const forwarder = new Forwarder({
    nodeId,
    partitions,
    monotonicMillis,
    listenerMillis,
    send,
    gather,
    isConnected,
    suspected: (node) => router.peerSuspected(node),
    silentTicksMax,
    shedding: init.shedding,
    firstId: random(FIRST_ID_BOUND),
  });
  const router: Router = new Router({
    nodeId,
    placement,
    partitions,
    hearsOfLeaders,
    forwarder,
    partitionOf: (userId) => partitionOf(userId, config.partitions),
    monotonicMillis,
    listenerMillis,
    deadlineMillis: requestDeadlineMillis,
    silentTicksMax,
    pauseMillisMin: tickMillis,
    pauseMillisMax: electionMillis,
    electionMillisMax: 2 * electionMillis,
    breakerTicksMin: breakerTicksOf(config.timing),
    // Long enough for a slow leader: a leader that reads the probe too late does not say that it leads.
    searchMillis: Math.min(requestDeadlineMillis, 4 * electionMillis),
    searchPauseTicks: Math.ceil(electionMillis / (2 * tickMillis)),
    openMax: queues?.openMax ?? OPEN_REQUESTS_MAX,
  });
  return { forwarder, router, requests: newMatchedRequests(routing, router) };
}

function newMatchedRequests({ init, state, ask, partitions }: RoutingInit, router: Router): MatchedRequests {
  const { nodeId, config, clocks, listenerMillis, random, queues } = init;
  const { monotonicMillis } = clocks;
  const ruleSets = new CurrentRuleSet();
  const earlier = new EarlierRuleSets(monotonicMillis);
  const nodeCount = (): number => state()?.nodes.length ?? config.founders.length;
  const localLimits = new LocalLimits();
  const process = random(FIRST_ID_BOUND);
  let count = 0;
  return new MatchedRequests({
    ruleSet: () => {
      const known = state();
      return known === undefined ? 'starting' : ruleSets.of(known);
    },
    earlier: () => earlier.of(state()?.matchedBefore),
    partitionOf: (userId) => router.partitionOf(userId),
    ask,
    deniedHere: (request) => partitions.get(router.partitionOf(request.userId))?.deniedAtOnce(request),
    tried: (ruleId, wouldAllow) => init.tried?.(ruleId, wouldAllow),
    newAttempt: () => attemptOf(nodeId, process + (count += 1)),
    monotonicMillis,
    listenerMillis,
    deadlineMillis: config.timing.requestDeadlineMillis,
    waitingMax: queues?.openMax ?? OPEN_REQUESTS_MAX,
    degraded: new DegradedDecisions({
      takeLocal: (limits) => {
        const wanted = localLimitsOf(limits, nodeCount());
        const takenMillis = monotonicMillis();
        return {
          waitMillis: localLimits.take(wanted, takenMillis),
          giveBack: () => localLimits.giveBack(wanted, takenMillis),
        };
      },
      monotonicMillis,
      changed: (isDegraded, decisions) => init.decidesDegraded?.(isDegraded, decisions),
    }),
  });
}

/** The number of an attempt, 1 to `ATTEMPT_MAX`. @param count of attempts, from a random start in each process */
function attemptOf(nodeId: number, count: number): number {
  return (count % FIRST_ID_BOUND) * NODES_APART + (nodeId % NODES_APART) + 1;
}

/**
 * What a single node may grant under these limits by fail mode `local`. All nodes together grant at most the limit.
 */
export function localLimitsOf(limits: readonly MatchedLimit[], nodes: number): WantedLimit[] {
  return limits.map(({ ruleId, window, userId, cost }) => ({
    name: `${ruleId}\n${userId}`,
    limit: Math.floor(window.limit / nodes),
    windowMillis: window.windowMillis,
    cost,
  }));
}

/** One deadline, but at least the time of two elections, so that a failover opens no breaker. */
function breakerTicksOf({ requestDeadlineMillis, electionMillis, tickMillis }: Timing): number {
  return Math.ceil(Math.max(requestDeadlineMillis, 4 * electionMillis) / tickMillis);
}

/** Early enough to ask another node before the deadline, late enough for a round trip over slow links. */
function silentTicksOf({ requestDeadlineMillis, tickMillis }: Timing): number {
  return Math.max(3, Math.ceil((0.4 * requestDeadlineMillis) / tickMillis));
}
