/** Connects the listeners of a node to its core and its figures, as the interface `NodeApi`. Wiring only. */
import type { NodeApi } from '../api/api-listener.ts';
import type { NodeAddress } from '../api/node-address.ts';
import type { LoadShedder } from '../shedding/load-shedder.ts';
import type { Access } from './access.ts';
import { ClusterView, type Known, reportOf } from './cluster-view.ts';
import type { ListenerUsage } from './listener-usage.ts';
import type { NodeCore } from './node-core.ts';
import type { Clocks } from '../api/clocks.ts';
import type { NodeInit } from './node-init.ts';
import type { NodePace } from './node-pace.ts';
import type { NodeReadiness } from './readiness.ts';
import { rulesInForce } from './rules-in-force.ts';
import { SLOW_MILLIS, type SlowDecisions } from './slow-decisions.ts';
import { takenRequests } from './taken-requests.ts';

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
  { config, nodeId }: Pick<NodeInit, 'config' | 'nodeId'>,
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
  { nodeId, version: release }: Pick<NodeInit, 'nodeId' | 'version'>,
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
