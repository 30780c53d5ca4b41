/**
 * The replicated knowledge of a cluster about itself: which nodes belong to it, and whether every partition has moved
 * to where they should be. Pure: commands in, state out, the same on every node. It is the state machine of group 0.
 */
import type { NodeId } from '../../raft/types.ts';
import type { ChangeFailure, ClusterChange, NodeChange } from '../api/cluster-change.ts';
import type { HostPort, NodeAddress } from '../api/node-address.ts';
import { NODES_MAX } from '../config/config.ts';
import type { RuleTable } from '../limiter/rules.ts';
import type { Hash32 } from '../partition/hash.ts';
import { foundingPlacement, placementAfter } from '../partition/placement.ts';
import { encodePlacement } from './placement-text.ts';
import type { NodeLabels } from '../api/node-labels.ts';
import { changedDraining } from './draining.ts';
import { changedLabels, labelled, placementText } from './labels.ts';
import { changedTokens, type TokenEntryChange, type TokenTable } from './token-table.ts';
import { changedVersion } from './versions.ts';

/** A node of the cluster. Its labels are what operators said last, and say which copies go where. */
export interface Member extends NodeLabels {
  readonly id: NodeId;
  /** Tells its database from any other; absent until a node that joins introduces itself. Never changes after that. */
  readonly incarnation?: string;
  /** As it said itself, or as it was added; absent for a founder of which the first leader knew no address. */
  readonly http?: HostPort;
  readonly peer?: HostPort;
  /** Others are to lead what it leads, and its doors take no requests. Until an operator says otherwise. */
  readonly draining?: true;
}

export interface MetaState {
  /** Counts the changes of the nodes; 1 when the cluster is created. */
  readonly version: number;
  /** All groups have the members that this version wants. Nodes removed by then are needed no more. */
  readonly settledVersion: number;
  /** By id. */
  readonly nodes: readonly Member[];
  /** Which of them should hold what (placement-text.ts): made of the placement of the version before, once and for all. */
  readonly placement: string;
  /** The nodes of `settledVersion`, by id. */
  readonly settledNodes: readonly NodeId[];
  /** Which of those held what. */
  readonly settledPlacement: string;
  /** Removed since then: still needed, as partitions may not have moved away from them. */
  readonly leaving: readonly Member[];
  /** Ids that left: they never come back, for whoever bears them may have forgotten what it promised. */
  readonly retired: readonly NodeId[];
  /** In force: what the cluster was created with, or the last change. All partitions come to decide by them. */
  readonly rules: RuleTable;
  /** What `rules` were made of, and requests are matched by: see `MetaChange`. */
  readonly definitions?: string;
  /** Who may ask what; absent until the first one is made. */
  readonly tokens?: TokenTable;
  /**
   * Nodes that speak this version can read all that is proposed to a log, put into a snapshot, or sent under the number of a
   * connection: what a later version adds to these forms is written only if this is at least that one. Nothing else says so.
   */
  readonly clusterVersion: number;
}

/** What a node says of itself. */
export type Introduction = Member & { readonly incarnation: string };

/** What nodes hand to the leader of group 0, and are told the end of: what operators ask for, once it is read and secrets are drawn. */
export type MetaChange =
  | Exclude<ClusterChange, { readonly type: 'rules' | 'tokens' }>
  | { readonly type: 'tokens'; readonly change: TokenEntryChange }
  | {
      readonly type: 'rules';
      readonly table: RuleTable;
      /** The version of the rules in group 0 that this replaces, 0 if there are none. */
      readonly base: number;
      /** What the table was made of, in JSON; absent: nothing is matched, and callers name the rules of the table. */
      readonly definitions?: string;
    };

export type MetaCommand =
  | {
      readonly type: 'create';
      readonly nodes: readonly Introduction[];
      readonly replicas: number;
      readonly partitions: number;
      /** The first rules, of version 1. */
      readonly rules: RuleTable;
      readonly clusterVersion: number;
    }
  | MetaChange
  | { readonly type: 'introduce'; readonly node: Introduction }
  | { readonly type: 'settled'; readonly version: number };

/** What is kept beside the state that users see. */
export interface MetaRecord {
  readonly state: MetaState;
  /** Fixed at creation. */
  readonly replicas: number;
  /** The nodes that were added, as that was asked: a repetition is one, though they said since that they are elsewhere. */
  readonly added: readonly NodeAddress[];
}

export interface MetaResult {
  readonly record: MetaRecord | undefined;
  readonly refusal?: ChangeFailure;
}

/** @param hash where the ring of placement has its nodes and partitions; fixed with the cluster */
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
  // The groups begin where the ring has them, whatever is known of the nodes. From there they go where labels want them.
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
  // A repetition of a change that was made has nothing left to do.
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

/** Whoever made them knew those before; and partitions take only what is newer. */
function changedRules(
  record: MetaRecord | undefined,
  { table, base, definitions }: Extract<MetaChange, { type: 'rules' }>,
): MetaResult {
  const current = record?.state.rules.version ?? 0;
  if (record === undefined || base !== current || table.version <= current)
    return { record, refusal: 'rulesChanged' };
  const { definitions: _, ...state } = record.state;
  const matched = definitions === undefined ? {} : { definitions };
  return { record: { ...record, state: { ...state, rules: table, ...matched } } };
}

/**
 * Records the incarnation of a node that has none, the first one for ever; and where a node is that says so itself.
 * Addresses are not compared with those of others: while several nodes move, one may be where another was.
 */
function introduced(record: MetaRecord, node: Introduction): MetaRecord {
  const { state } = record;
  const known = [...state.nodes, ...state.leaving].find(({ id }) => id === node.id);
  if (known === undefined || !tellsMore(known, node)) return record;
  const replace = (members: readonly Member[]): readonly Member[] =>
    members.map((member) => (member === known ? { ...known, ...node } : member));
  return { ...record, state: { ...state, nodes: replace(state.nodes), leaving: replace(state.leaving) } };
}

/** Is there anything to record of what `node` says, given what is? */
export function tellsMore(known: Member, node: Introduction): boolean {
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

/** Labels may be others since, but not those it was added with. */
function isAsAdded(a: Member, b: Member): boolean {
  return isSame(a, b) && a.zone === b.zone && a.host === b.host;
}

function clashes(a: Member, b: Member): boolean {
  const taken = addressesOf(a);
  return a.id === b.id || addressesOf(b).some((address) => address !== '' && taken.includes(address));
}
