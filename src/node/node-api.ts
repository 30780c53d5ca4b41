/** Connects the listeners of a node to its core and its figures, as the interface `NodeApi`. */
import type { NodeApi } from '../api/api-listener.ts';
import type { NodeAddress } from '../api/node-address.ts';
import type { LoadShedder } from '../shedding/load-shedder.ts';
import type { Access } from './access.ts';
import { ClusterView, type Known, reportOf } from './cluster-view.ts';
import type { ListenerUsage } from './listener-usage.ts';
import type { NodeCore } from './node-core.ts';
import type { Clocks } from '../api/clocks.ts';
import type { ClusterConfig } from '../config/config.ts';
import type { NodeId } from '../../raft/types.ts';
import type { NodePace } from './node-pace.ts';
import type { NodeReadiness } from './readiness.ts';
import { rulesInForce } from './replicas.ts';
import { SLOW_MILLIS, type SlowDecisions } from './slow-decisions.ts';
import type { Unavailable } from '../api/answer.ts';
import { settleRequest } from '../matching/settlements.ts';

interface NodeApiInit {
  readonly readiness: NodeReadiness;
  readonly view: ClusterView;
  readonly usage: ListenerUsage;
  readonly access: Access;
  readonly slow: SlowDecisions;
  readonly shedder: LoadShedder;
  readonly pace: NodePace;
}

/** The partition of a key, and its leader if this node has a replica of it. */
function placeOf(userId: string, core: NodeCore | undefined): { partition?: number; leader?: number } {
  const partition = core?.router.partitionOf(userId);
  const leader = partition === undefined ? undefined : core?.partitions.get(partition)?.leader;
  return { ...(partition !== undefined && { partition }), ...(leader !== undefined && { leader }) };
}

/** The view of the cluster that this node reports. */
export function viewOf(
  { config, nodeId }: { readonly config: ClusterConfig; readonly nodeId: NodeId },
  readiness: NodeReadiness,
  clocks: Clocks,
): ClusterView {
  const replicated = (): Pick<Known, 'nodes' | 'version' | 'settledVersion' | 'clusterVersion'> => {
    return readiness.core?.meta.state ?? { nodes: config.nodes, version: 0, settledVersion: 0 };
  };
  const known = (): Known => ({
    ...replicated(),
    gatheredOn: readiness.core?.leading.gatheredOn,
    rules: rulesInForce(readiness.core?.partitions.values() ?? []),
    replicasOf: (partition) => readiness.core?.placement.replicasOf(partition) ?? [],
    self: {
      id: nodeId,
      status: readiness.core?.membershipStatus ?? { state: 'waiting' },
      refusals: readiness.core?.refusals ?? new Map(),
    },
  });
  return new ClusterView(known, config.partitions, clocks.monotonicMillis);
}

/** The node as its listeners see it. */
export function nodeApi(
  { nodeId, version: release }: { readonly nodeId: NodeId; readonly version?: string },
  { resp }: Pick<NodeAddress, 'resp'>,
  { readiness, view, usage, access, slow, shedder, pace }: NodeApiInit,
): NodeApi {
  return {
    access,
    ...takenRequests(readiness),
    shedding: shedder,
    refusedUnread: (requests) => usage.refusedUnread(requests),
    answered(request, answer, startedMillis) {
      const millis = usage.answered(request, answer, startedMillis);
      if (millis === undefined || millis < SLOW_MILLIS) return;
      const key = answer.kind === 'decision' ? answer.key : undefined;
      const place = key === undefined ? {} : placeOf(key, readiness.core);
      slow.answered(request, answer, { millis, ...place });
    },
    backup(group, done) {
      if (readiness.core === undefined) done({ ok: false, reason: 'starting' });
      else readiness.core.backups.open(group, done);
    },
    readiness: () => readiness.current,
    wantsNoClients: () => readiness.wantsNoClients,
    cluster() {
      const { core } = readiness;
      if (core !== undefined)
        view.update(reportOf(core, { nodeId, pid: process.pid, resp, release, pace: pace.of(core) }));
      return view.report();
    },
    usage(query, done) {
      if (readiness.core === undefined) done({ ok: false, reason: 'starting' });
      else readiness.core.usage.ask(query, done);
    },
    change(change, done) {
      if (readiness.core === undefined) done({ ok: false, reason: 'notLeader' });
      else readiness.core.change(change, done);
    },
    rules: () => readiness.core?.rules.inForce,
    rule: (id) => readiness.core?.rules.oneInForce(id),
  };
}

type Taken = Pick<NodeApi, 'ask' | 'allowListed' | 'peek' | 'refund' | 'operate' | 'setUsed' | 'customer'>;

const STARTING: Unavailable = { kind: 'unavailable', reason: 'starting', proposed: false };
const DRAINING: Unavailable = { kind: 'unavailable', reason: 'draining', proposed: false };
const NOT_MEMBER: Unavailable = { kind: 'unavailable', reason: 'not_member', proposed: false };

/**
 * The request part of `NodeApi`: passes requests to the core, or refuses them: before the core is loaded, while the
 * node is drained, and when it is excluded from its cluster.
 */
export function takenRequests(readiness: NodeReadiness): Taken {
  /** The core; undefined while requests are refused with `refusal`. */
  const serving = (): NodeCore | undefined => {
    const { core, isDraining } = readiness;
    return isDraining || core?.isExcluded === true ? undefined : core;
  };
  const refusal = (): Unavailable => {
    const { core } = readiness;
    if (core === undefined) return STARTING;
    return core.isExcluded ? NOT_MEMBER : DRAINING;
  };
  return {
    ask(question, done) {
      const core = serving();
      if (core === undefined) done(refusal(), 0);
      else if (question.settle === true && question.requestId !== undefined)
        settleRequest(core.requests, question, done);
      else core.requests.ask(question, done);
    },
    allowListed(request, done) {
      const core = serving();
      if (core === undefined) done(refusal());
      else core.requests.askListed(request, (asked, reported) => core.ask(asked, reported), done);
    },
    peek(question, done) {
      const core = serving();
      if (core === undefined) done(refusal(), 0);
      else core.requests.peeks.ask(question, done);
    },
    refund(question, done) {
      const core = serving();
      if (core === undefined) done(refusal(), 0);
      else core.requests.refund(question, done);
    },
    operate(request, done) {
      const core = serving();
      if (core === undefined) done(refusal(), 0);
      else core.ask(request, done);
    },
    setUsed(question, done) {
      const core = serving();
      if (core === undefined) done(refusal(), 0);
      else core.requests.customers.setUsed(question, done);
    },
    customer(customerId, action, done) {
      const core = serving();
      if (core === undefined) done(refusal(), 0);
      else core.requests.customers.ask(customerId, action, done);
    },
  };
}
