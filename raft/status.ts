/** The status of a replica for operators and tests. The protocol does not use it. */
import type { CoreState, Role } from './core-state.ts';
import type { GroupConfig, NodeId } from './types.ts';

/** A copy of a replica's state at one moment. Indexes are log indexes. */
export interface RaftStatus {
  readonly role: Role;
  readonly term: number;
  readonly leader: NodeId;
  readonly commit: number;
  readonly applied: number;
  readonly lastIndex: number;
  /** Entries up to here were compacted away. */
  readonly logStart: number;
  /** On a leader: the last index that each member is known to have on disk. Empty elsewhere. */
  readonly match: ReadonlyMap<NodeId, number>;
  /** The configuration as of `applied`. */
  readonly config: GroupConfig;
}

/** Builds the status. */
export function statusOf({ role, term, leader, log, leadership, config }: CoreState): RaftStatus {
  const match = new Map<NodeId, number>();
  for (const [peer, { match: index }] of leadership?.progress ?? []) match.set(peer, index);
  return {
    role,
    term,
    leader,
    commit: log.committed,
    applied: log.applied,
    lastIndex: log.lastIndex,
    logStart: log.base.index,
    match,
    config,
  };
}
