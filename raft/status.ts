/** What a replica shows of itself to whoever looks from outside. Nothing in the protocol goes by it. */
import type { CoreState, Role } from './core-state.ts';
import type { GroupConfig, NodeId } from './types.ts';

export interface RaftStatus {
  readonly role: Role;
  readonly term: number;
  readonly leader: NodeId;
  readonly commit: number;
  readonly applied: number;
  readonly lastIndex: number;
  /** Entries up to here were compacted away. */
  readonly logStart: number;
  /** On a leader: what each member is known to have on disk. Empty elsewhere. */
  readonly match: ReadonlyMap<NodeId, number>;
  /** Who belongs to the group, as of `applied`. */
  readonly config: GroupConfig;
}

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
