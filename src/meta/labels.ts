/**
 * The labels of nodes in the state of group 0, and the placement that follows from them. Pure: the same on every node.
 */
import type { NodeId } from '../../raft/types.ts';
import type { ChangeFailure, LabelChange } from '../api/cluster-change.ts';
import { type NodeLabels, labelsOf } from '../api/node-address.ts';
import type { Hash32 } from '../partition/hash.ts';
import { placementAfter } from '../partition/placement.ts';
import type { LabelledNode } from '../partition/topology.ts';
import type { Member, MetaRecord } from './cluster-state.ts';
import { decodePlacement, encodePlacement } from './placement-text.ts';

/** Changes the labels of a node. Returns the same record if nothing changes, so a repetition is harmless. */
export function changedLabels(
  record: MetaRecord,
  change: LabelChange,
  hash: Hash32,
): MetaRecord | ChangeFailure {
  const { state } = record;
  const member = state.nodes.find(({ id }) => id === change.node);
  if (member === undefined) return 'unknownNode';
  const { zone, host, ...others } = member;
  const labels = labelsOf({ ...after('zone', zone, change.zone), ...after('host', host, change.host) });
  if (labels.zone === zone && labels.host === host) return record;
  const nodes = state.nodes.map((each) => (each === member ? { ...others, ...labels } : each));
  // Hosts and zones also decide where group 0 is placed, so this is a new version even if no partition moves.
  const version = state.version + 1;
  return { ...record, state: { ...state, version, nodes, placement: placementText(record, nodes, hash) } };
}

function after(
  name: keyof NodeLabels,
  before: string | undefined,
  wanted: string | null | undefined,
): NodeLabels {
  const label = wanted === undefined ? before : (wanted ?? undefined);
  return label === undefined ? {} : { [name]: label };
}

/** The placement of the partitions on `nodes`. At most one node has joined and at most one has left since `record`. */
export function placementText(
  { state, replicas }: MetaRecord,
  nodes: readonly Member[],
  hash: Hash32,
): string {
  const before = idsOf(state.nodes);
  const table = decodePlacement(state.placement, before, replicas);
  const isSettled = state.settledVersion === state.version;
  const settled = isSettled ? table : decodePlacement(state.settledPlacement, state.settledNodes, replicas);
  const change = { before: labelled(state.nodes), table, after: labelled(nodes), settled };
  return encodePlacement(placementAfter(change, hash), idsOf(nodes));
}

/** The nodes with their labels. */
export function labelled(nodes: readonly Member[]): LabelledNode[] {
  return nodes.map(({ id, ...labels }) => ({ id, ...labelsOf(labels) }));
}

function idsOf(nodes: readonly Member[]): NodeId[] {
  return nodes.map(({ id }) => id);
}
