/**
 * The state machine of group 0: the nodes of the cluster, whether every partition has moved to its place, rules and
 * tokens. Pure: commands in, state out, the same on every node.
 */
import type { NodeId } from '../../raft/types.ts';
import type { ChangeFailure, NodeChange } from '../api/cluster-change.ts';
import { NODES_MAX } from '../config/config.ts';
import type { Hash32 } from '../partition/hash.ts';
import { foundingPlacement, placementAfter } from '../partition/placement.ts';
import { encodePlacement } from './placement-text.ts';
import type { MatchedBefore } from '../api/rules-change.ts';
import type {
  Introduction,
  Member,
  MetaChange,
  MetaCommand,
  MetaRecord,
  MetaState,
} from './cluster-state.ts';
import { changedDraining } from './draining.ts';
import { changedLabels, labelled, placementText } from './labels.ts';
import { changedTokens } from './token-table.ts';
import { changedVersion } from './versions.ts';

/** At most this many earlier definitions are kept, with this many characters in total. */
const MATCHED_BEFORE_MAX = 8;
const MATCHED_BEFORE_LENGTH_MAX = 1 << 20;

/** The record after a command, and the reason if the command was refused. */
export interface MetaResult {
  readonly record: MetaRecord | undefined;
  readonly refusal?: ChangeFailure;
}

/**
 * Applies a command. A refused command leaves the record unchanged.
 *
 * @param record undefined before the first command
 * @param hash places nodes and partitions on the hash ring; fixed with the cluster
 */
export function applyMetaCommand(
  record: MetaRecord | undefined,
  command: MetaCommand,
  hash: Hash32,
): MetaResult {
  switch (command.type) {
    case 'create':
      return { record: record ?? created(command, hash) };
    case 'nodes': {
      // Nobody proposes one before the cluster is created.
      if (record === undefined) return { record, refusal: 'unknownNode' };
      const changed = changedNodes(record, command.change, hash);
      return typeof changed === 'string' ? { record, refusal: changed } : { record: changed };
    }
    case 'rules':
      return changedRules(record, command);
    case 'tokens': {
      if (record === undefined) return { record, refusal: 'unknownToken' };
      const tokens = changedTokens(record.state.tokens, command.change);
      if (typeof tokens === 'string') return { record, refusal: tokens };
      return { record: { ...record, state: { ...record.state, tokens } } };
    }
    case 'drain': {
      if (record === undefined) return { record, refusal: 'unknownNode' };
      const state = changedDraining(record.state, command.change);
      if (typeof state === 'string') return { record, refusal: state };
      return { record: state === record.state ? record : { ...record, state } };
    }
    case 'label': {
      if (record === undefined) return { record, refusal: 'unknownNode' };
      const changed = changedLabels(record, command.change, hash);
      return typeof changed === 'string' ? { record, refusal: changed } : { record: changed };
    }
    case 'upgrade': {
      // Nobody proposes one before the cluster is created.
      if (record === undefined) return { record, refusal: 'lowerVersion' };
      const state = changedVersion(record.state, command.change);
      if (typeof state === 'string') return { record, refusal: state };
      return { record: state === record.state ? record : { ...record, state } };
    }
    case 'introduce':
      return { record: record === undefined ? record : introduced(record, command.node) };
    case 'settled':
      return { record: record?.state.version === command.version ? settled(record) : record };
  }
}

function created(
  { nodes, replicas, partitions, rules, clusterVersion }: Extract<MetaCommand, { type: 'create' }>,
  hash: Hash32,
): MetaRecord {
  const sorted = byId(nodes);
  const settledNodes = idsOf(sorted);
  const table = foundingPlacement(settledNodes, partitions, replicas, hash);
  const placement = encodePlacement(table, settledNodes);
  const settled = { settledVersion: 1, settledNodes, settledPlacement: placement };
  const founded = {
    state: {
      version: 1,
      ...settled,
      nodes: sorted,
      placement,
      leaving: [],
      retired: [],
      rules,
      clusterVersion,
    },
    replicas,
    added: [],
  };
  // The groups begin where the ring places them, regardless of labels. From there they move to where the
  // labels want them.
  const before = settledNodes.map((id) => ({ id }));
  const change = { before, table, after: labelled(sorted), isFounding: true } as const;
  const spread = encodePlacement(placementAfter(change, hash), settledNodes);
  if (spread === placement) return founded;
  return { ...founded, state: { ...founded.state, version: 2, placement: spread } };
}

function changedNodes(
  record: MetaRecord,
  { add, remove }: NodeChange,
  hash: Hash32,
): MetaRecord | ChangeFailure {
  const { state, replicas, added } = record;
  if (add === undefined && remove === undefined) return 'emptyChange';
  if (add !== undefined && (add.id === remove || state.retired.includes(add.id))) return 'retiredNode';
  // A repeated change has nothing left to do.
  const isAdded = add === undefined || [...state.nodes, ...added].some((node) => isAsAdded(node, add));
  const isRemoved = remove === undefined || state.retired.includes(remove);
  if (isAdded && isRemoved) return record;
  if (!isAdded && state.nodes.some((node) => node.id !== remove && clashes(node, add))) return 'nodeExists';
  const kept = state.nodes.filter(({ id }) => id !== remove);
  const leaving = state.nodes.filter(({ id }) => id === remove);
  if (!isRemoved && leaving.length === 0) return 'unknownNode';
  const nodes = isAdded ? kept : byId([...kept, add]);
  if (nodes.length < replicas) return 'tooFewNodes';
  if (nodes.length > NODES_MAX) return 'tooManyNodes';
  const retired = isRemoved ? state.retired : [...state.retired, remove];
  const version = state.version + 1;
  const placement = placementText(record, nodes, hash);
  return {
    ...record,
    added: [...added, ...(isAdded ? [] : [add])].filter(({ id }) => id !== remove),
    state: { ...state, version, nodes, placement, leaving: [...state.leaving, ...leaving], retired },
  };
}

/** The author of new rules must know the current ones, and partitions accept only newer versions. */
function changedRules(
  record: MetaRecord | undefined,
  { table, base, definitions, document, matchedBefore }: Extract<MetaChange, { type: 'rules' }>,
): MetaResult {
  const current = record?.state.rules.version ?? 0;
  if (record === undefined || base !== current || table.version <= current)
    return { record, refusal: 'rulesChanged' };
  const { definitions: _, document: __, ...state } = record.state;
  const matched = {
    ...(definitions !== undefined && { definitions }),
    ...(document !== undefined && { document }),
  };
  const before =
    matchedBefore === undefined ? {} : { matchedBefore: withBefore(record.state, matchedBefore) };
  return { record: { ...record, state: { ...state, rules: table, ...matched, ...before } } };
}

/** Adds the current definitions to the earlier ones: each once, newest first, the oldest dropped. */
function withBefore({ rules, matchedBefore = [] }: MetaState, definitions: string): readonly MatchedBefore[] {
  const others = matchedBefore.filter((one) => one.definitions !== definitions);
  const all = [{ definitions, horizonMillis: rules.requestIdHorizonMillis }, ...others];
  let length = 0;
  return all.slice(0, MATCHED_BEFORE_MAX).filter((one) => {
    length += one.definitions.length;
    return length <= MATCHED_BEFORE_LENGTH_MAX;
  });
}

/**
 * Records the incarnation of a node that has none, once and for all, and its current addresses. Addresses may equal
 * those of other nodes: while several nodes move, one may be where another was.
 */
function introduced(record: MetaRecord, node: Introduction): MetaRecord {
  const { state } = record;
  const known = [...state.nodes, ...state.leaving].find(({ id }) => id === node.id);
  if (known === undefined || !reportsMore(known, node)) return record;
  const replace = (members: readonly Member[]): readonly Member[] =>
    members.map((member) => (member === known ? { ...known, ...node } : member));
  return { ...record, state: { ...state, nodes: replace(state.nodes), leaving: replace(state.leaving) } };
}

/** Whether the introduction of `node` contains something new compared with `known`. */
export function reportsMore(known: Member, node: Introduction): boolean {
  if (known.incarnation !== undefined && known.incarnation !== node.incarnation) return false;
  return !isSame({ ...known, ...node }, known) || known.incarnation === undefined;
}

function settled(record: MetaRecord): MetaRecord {
  const { state } = record;
  const { version: settledVersion, placement: settledPlacement } = state;
  const settledNodes = idsOf(state.nodes);
  return { ...record, state: { ...state, settledVersion, settledNodes, settledPlacement, leaving: [] } };
}

function idsOf(nodes: readonly Member[]): NodeId[] {
  return nodes.map(({ id }) => id);
}

function byId(nodes: readonly Member[]): Member[] {
  return [...nodes].sort((a, b) => a.id - b.id);
}

function addressesOf({ http, peer }: Member): string[] {
  return [http, peer].map((address) => (address === undefined ? '' : `${address.host}:${address.port}`));
}

function isSame(a: Member, b: Member): boolean {
  return a.id === b.id && String(addressesOf(a)) === String(addressesOf(b));
}

/** Whether `a` has the labels that `b` was added with, too. */
function isAsAdded(a: Member, b: Member): boolean {
  return isSame(a, b) && a.zone === b.zone && a.host === b.host;
}

function clashes(a: Member, b: Member): boolean {
  const taken = addressesOf(a);
  return a.id === b.id || addressesOf(b).some((address) => address !== '' && taken.includes(address));
}
