/** The state of the cluster in group 0, and the commands in its log. Plain data. */
import type { NodeId } from '../../raft/types.ts';
import type { ClusterChange } from '../api/cluster-change.ts';
import type { HostPort, NodeAddress, NodeLabels } from '../api/node-address.ts';
import type { MatchedBefore } from '../api/rules-change.ts';
import type { RuleTable } from '../limiter/rules.ts';
import type { TokenEntryChange, TokenTable } from './token-table.ts';

/** A node of the cluster. Its labels are the last that an operator set; they decide which copies go where. */
export interface Member extends NodeLabels {
  readonly id: NodeId;
  /** Identifies its database. Absent until a joining node introduces itself; then it never changes. */
  readonly incarnation?: string;
  /**
   * Its addresses as it introduced them, or as it was added. Absent for a founder whose address the first leader did
   * not know.
   */
  readonly http?: HostPort;
  readonly peer?: HostPort;
  /** Set while an operator has drained the node: others should lead, and its listeners take no requests. */
  readonly draining?: true;
}

/** The replicated state of group 0. */
export interface MetaState {
  /** The number of changes to the nodes and their places; 1 when the cluster is created. */
  readonly version: number;
  /**
   * The newest version whose placement all groups have reached. Nodes that were removed by then are no longer needed.
   */
  readonly settledVersion: number;
  /** Ascending by id. */
  readonly nodes: readonly Member[];
  /**
   * The placement of the partitions on `nodes` (placement-text.ts). Each version computes it once from the previous
   * one.
   */
  readonly placement: string;
  /** The nodes of `settledVersion`, ascending by id. */
  readonly settledNodes: readonly NodeId[];
  /** The placement of `settledVersion`. */
  readonly settledPlacement: string;
  /** The nodes removed since then. They are still needed, because partitions may not have moved away from them. */
  readonly leaving: readonly Member[];
  /**
   * The ids of removed nodes. They are never used again, because a node with such an id may have forgotten its
   * promises.
   */
  readonly retired: readonly NodeId[];
  /** The rules in force. All partitions will decide by them. */
  readonly rules: RuleTable;
  /** The definitions that `rules` were compiled from and that requests are matched with, see `MetaChange`. */
  readonly definitions?: string;
  /** The source text of `definitions`, for editing; it decides nothing. */
  readonly document?: string;
  /**
   * The definitions of earlier rules that matched requests differently, newest first, see `MetaChange`. Absent if there
   * are none.
   */
  readonly matchedBefore?: readonly MatchedBefore[];
  /** The access tokens; absent until the first one is created. */
  readonly tokens?: TokenTable;
  /**
   * The version of the cluster. Nodes that speak this version can read all logs, snapshots and frames. A format that a
   * later version adds is written only if this is at least that version.
   */
  readonly clusterVersion: number;
}

/** What a node reports about itself. */
export type Introduction = Member & { readonly incarnation: string };

/**
 * A change that nodes forward to the leader of group 0 and get a result for: an operator's request after it was parsed
 * and its secrets were drawn.
 */
export type MetaChange =
  | Exclude<ClusterChange, { readonly type: 'rules' | 'tokens' }>
  | { readonly type: 'tokens'; readonly change: TokenEntryChange }
  | {
      readonly type: 'rules';
      readonly table: RuleTable;
      /** The version of the rules that this change replaces; 0 if there are none. */
      readonly base: number;
      /**
       * The definitions that the table was compiled from, as JSON. Absent if nothing is matched and clients name rules
       * of the table directly.
       */
      readonly definitions?: string;
      /** The source text of the definitions, if there is one. */
      readonly document?: string;
      /** The definitions of the replaced rules, as JSON, if those match requests differently. */
      readonly matchedBefore?: string;
    };

/** A command in the log of group 0. */
export type MetaCommand =
  | {
      readonly type: 'create';
      readonly nodes: readonly Introduction[];
      readonly replicas: number;
      readonly partitions: number;
      /** The first rules, with version 1. */
      readonly rules: RuleTable;
      readonly clusterVersion: number;
    }
  | MetaChange
  | { readonly type: 'introduce'; readonly node: Introduction }
  | { readonly type: 'settled'; readonly version: number };

/** The full record of group 0: the state that users see, and what it needs besides. */
export interface MetaRecord {
  readonly state: MetaState;
  /** The number of copies per partition, fixed at creation. */
  readonly replicas: number;
  /**
   * The nodes that were added, as requested, so that a repeated request is recognized even if a node has moved since.
   */
  readonly added: readonly NodeAddress[];
}
