/** The forwarder and the router of a node, as the timing of its cluster wants them. Wires; decides nothing. */
import { partitionOf } from '../partition/hash.ts';
import type { Timing } from '../config/config.ts';
import { LocalShares, type WantedShare } from '../limiter/local-shares.ts';
import { CurrentBook } from '../matching/current-book.ts';
import { EarlierBooks } from '../matching/earlier-books.ts';
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

/** Requests without an answer that a node holds at a time. */
export const OPEN_REQUESTS_MAX = 65_536;
/** Two nodes never draw the same number for an attempt if their ids differ modulo this. */
const NODES_APART = 32;

export interface RoutingInit {
  readonly init: NodeCoreInit;
  readonly placement: ClusterPlacement;
  /** The replicas on this node. */
  readonly partitions: ReadonlyMap<number, Partition>;
  /** What this node knows of its cluster. */
  readonly state: () => MetaState | undefined;
  /** Asks whoever leads, if this node may. */
  readonly ask: MatchedRequestsInit['ask'];
  /** Can the replica here be relied on to learn who leads? */
  readonly hearsOfLeaders: (partition: number) => boolean;
}

export interface Routing {
  readonly forwarder: Forwarder;
  readonly router: Router;
  readonly requests: MatchedRequests;
}

export function newRouting(routing: RoutingInit): Routing {
  const { init, placement, partitions, hearsOfLeaders } = routing;
  const { nodeId, config, clocks, doorMillis, random, send, gather, isConnected, queues } = init;
  const { monotonicMillis } = clocks;
  const { electionMillis, requestDeadlineMillis, tickMillis } = config.timing;
  const silentTicksMax = silentTicksOf(config.timing);
  const forwarder = new Forwarder({
    nodeId,
    partitions,
    monotonicMillis,
    doorMillis,
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
    doorMillis,
    deadlineMillis: requestDeadlineMillis,
    silentTicksMax,
    pauseMillisMin: tickMillis,
    pauseMillisMax: electionMillis,
    electionMillisMax: 2 * electionMillis,
    breakerTicksMin: breakerTicksOf(config.timing),
    // Long enough for a slow leader, as who reads a look too late says nothing of who leads.
    lookMillis: Math.min(requestDeadlineMillis, 4 * electionMillis),
    lookPauseTicks: Math.ceil(electionMillis / (2 * tickMillis)),
    openMax: queues?.openMax ?? OPEN_REQUESTS_MAX,
  });
  return { forwarder, router, requests: newMatchedRequests(routing, router) };
}

function newMatchedRequests({ init, state, ask, partitions }: RoutingInit, router: Router): MatchedRequests {
  const { nodeId, config, clocks, doorMillis, random, queues } = init;
  const { monotonicMillis } = clocks;
  const books = new CurrentBook();
  const earlier = new EarlierBooks(monotonicMillis);
  const nodeCount = (): number => state()?.nodes.length ?? config.founders.length;
  const shares = new LocalShares();
  const process = random(FIRST_ID_BOUND);
  let count = 0;
  return new MatchedRequests({
    book: () => {
      const known = state();
      return known === undefined ? 'starting' : books.of(known);
    },
    earlier: () => earlier.of(state()?.matchedBefore),
    partitionOf: (userId) => router.partitionOf(userId),
    ask,
    deniedHere: (request) => partitions.get(router.partitionOf(request.userId))?.deniedAtOnce(request),
    tried: (ruleId, wouldAllow) => init.tried?.(ruleId, wouldAllow),
    newAttempt: () => attemptOf(nodeId, process + (count += 1)),
    monotonicMillis,
    doorMillis,
    deadlineMillis: config.timing.requestDeadlineMillis,
    waitingMax: queues?.openMax ?? OPEN_REQUESTS_MAX,
    degraded: new DegradedDecisions({
      takeLocal: (limits) => {
        const wanted = localSharesOf(limits, nodeCount());
        const takenMillis = monotonicMillis();
        return {
          waitMillis: shares.take(wanted, takenMillis),
          giveBack: () => shares.giveBack(wanted, takenMillis),
        };
      },
      monotonicMillis,
      changed: (isDegraded, decisions) => init.decidesDegraded?.(isDegraded, decisions),
    }),
  });
}

/** The number of an attempt, 1 to `ATTEMPT_MAX`. @param count of attempts, from a start that each process draws at random */
function attemptOf(nodeId: number, count: number): number {
  return (count % FIRST_ID_BOUND) * NODES_APART + (nodeId % NODES_APART) + 1;
}

/** What one of so many nodes may grant under these limits: all nodes together grant no more than the limit by it. */
export function localSharesOf(limits: readonly MatchedLimit[], nodes: number): WantedShare[] {
  return limits.map(({ ruleId, window, userId, cost }) => ({
    name: `${ruleId}\n${userId}`,
    limit: Math.floor(window.limit / nodes),
    windowMillis: window.windowMillis,
    cost,
  }));
}

/** A deadline; where that is short, the time of two elections, so that a failover opens none. */
function breakerTicksOf({ requestDeadlineMillis, electionMillis, tickMillis }: Timing): number {
  return Math.ceil(Math.max(requestDeadlineMillis, 4 * electionMillis) / tickMillis);
}

/** Early enough to ask another node before the deadline, late enough for a way there and back over slow links. */
function silentTicksOf({ requestDeadlineMillis, tickMillis }: Timing): number {
  return Math.max(3, Math.ceil((0.4 * requestDeadlineMillis) / tickMillis));
}
