/** What group 0 knows of the cluster, and what is written into its log to change that. Plain data. */
import type { NodeId } from '../../raft/types.ts';
import type { ClusterChange } from '../api/cluster-change.ts';
import type { HostPort, NodeAddress } from '../api/node-address.ts';
import type { NodeLabels } from '../api/node-labels.ts';
import type { MatchedBefore } from '../api/rules-change.ts';
import type { RuleTable } from '../limiter/rules.ts';
import type { TokenEntryChange, TokenTable } from './token-table.ts';

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
  /** The text that `definitions` were read from, for whoever edits it; nothing is decided by it. */
  readonly document?: string;
  /** How requests were matched by rules that these have replaced, newest first: see `MetaChange`. Absent: none was. */
  readonly matchedBefore?: readonly MatchedBefore[];
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
      /** The text that these were read from; absent: no text says the same. */
      readonly document?: string;
      /** How the rules that this replaces match requests, in JSON, if these do it another way. */
      readonly matchedBefore?: string;
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
