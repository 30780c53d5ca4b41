/** The driver's state of one group, and the reports to its application and to callers that wait for the group. */
import { assert } from '../assert.ts';
import { RaftCore } from '../core.ts';
import type { RaftOptions, RandomBelow } from '../core-state.ts';
import type {
  GroupApplication,
  LeadershipStatus,
  MembershipDone,
  MembershipResult,
  SnapshotTarget,
} from './group-application.ts';
import type { IncomingSnapshot } from './incoming-snapshot.ts';
import { LocalSnapshots } from './local-snapshots.ts';
import { PendingReads } from './pending-reads.ts';
import { NO_NODE, type GroupId, type NodeId, type SnapshotMeta, type StoredGroup } from '../types.ts';

/** One group on this node. */
export interface Group {
  readonly id: GroupId;
  readonly core: RaftCore;
  readonly app: GroupApplication;
  preferredLeader: NodeId;
  /** The voters that this leader asked to take over in this term, without success. */
  readonly handedTo: Set<NodeId>;
  /** This node does not hand the group to its preferred leader before this tick. */
  balanceAtTick: number;
  readonly snapshots: LocalSnapshots;
  /** The snapshot that a leader is sending. */
  incoming: IncomingSnapshot | undefined;
  /** A snapshot that has replaced the core's log and whose state is built. Both take effect when it is on disk. */
  installing: { readonly meta: SnapshotMeta; readonly target: SnapshotTarget } | undefined;
  readonly reads: PendingReads;
  /** The change of members that this node proposed and that is not complete. */
  change: { readonly index: number; readonly term: number; readonly done: MembershipDone } | undefined;
  /** The status that the application was last given. */
  reported: LeadershipStatus;
  /**
   * Offers of this node to hold the group that are not on disk yet: `placement` is the version of the placement,
   * ascending.
   */
  offers: { readonly placement: number; readonly done: () => void }[];
  /**
   * Set while the group rests (rests.ts). On the leader: the version of this node's list since which it rests. On a
   * follower: the leader, and by how much group time is ahead of the clock of the leader's process.
   */
  rest:
    | { readonly kind: 'led'; readonly version: number }
    | { readonly kind: 'followed'; readonly leader: NodeId; readonly aheadMillis: number }
    | undefined;
  /** The tick of the last activity. */
  busyTick: number;
  /** This node no longer holds the group: nothing of it may leave. */
  isRemoved: boolean;
}

/** What a group is opened with. */
export interface GroupInit {
  readonly group: GroupId;
  /** The voters that the group was created with. Empty on a node that joins a running group. */
  readonly voters: readonly NodeId[];
  /** The voter that should lead when it can. */
  preferredLeader: NodeId;
  /** The state machine, with the state of the stored snapshot. */
  readonly app: GroupApplication;
  readonly stored: StoredGroup | undefined;
  /** For a group that was removed from this node: the version of the cluster's placement that brings it back. */
  readonly placement?: number;
}

/** Creates a group from what is on disk. */
export function openGroup(
  init: GroupInit,
  node: {
    readonly id: NodeId;
    readonly random: RandomBelow;
    readonly options: RaftOptions;
  },
): Group {
  const { app, stored, preferredLeader, placement } = init;
  const returns = placement !== undefined && placement > (stored?.placement ?? 0);
  assert(
    stored?.removed !== true || returns,
    'group {} was removed by placement {}: only a higher one may bring it back, not {}',
    init.group,
    stored?.placement,
    placement,
  );
  const core = new RaftCore({
    id: node.id,
    voters: init.voters,
    stored,
    clock: app.clock,
    random: node.random,
    options: node.options,
    isPreferred: preferredLeader === node.id,
  });
  return {
    id: init.group,
    core,
    app,
    preferredLeader,
    handedTo: new Set(),
    balanceAtTick: 0,
    snapshots: new LocalSnapshots(stored?.snapshot),
    incoming: undefined,
    installing: undefined,
    reads: new PendingReads(core),
    change: undefined,
    reported: { isLeader: false, term: 0, leader: NO_NODE },
    offers: returns ? [{ placement, done: () => undefined }] : [],
    rest: undefined,
    busyTick: 0,
    isRemoved: false,
  };
}

/** The group leaves this node: answers everything that waits for it as lost. */
export function closeGroup(group: Group): void {
  group.isRemoved = true;
  group.snapshots.close();
  group.reads.close();
  endChange(group, { ok: false, reason: 'unknownOutcome' });
}

/** Whether the application knows the current role, term and leader. */
export function isReported({ core, reported }: Group): boolean {
  return (
    reported.isLeader === (core.role === 'leader') &&
    reported.term === core.term &&
    reported.leader === core.leader
  );
}

/** Reports a change of role, term or leader to the application, and fails the requests that depended on the old one. */
export function reportStatus(group: Group): void {
  if (isReported(group)) return;
  const { core, reported } = group;
  const isLeader = core.role === 'leader';
  if (reported.isLeader && (!isLeader || reported.term !== core.term)) group.reads.fail();
  if (reported.term !== core.term) group.handedTo.clear();
  group.reported = { isLeader, term: core.term, leader: core.leader };
  if (group.change !== undefined && group.change.term !== (isLeader ? core.term : 0)) {
    endChange(group, { ok: false, reason: 'unknownOutcome' });
  }
  group.app.statusChanged(group.reported);
}

/** Answers the caller that asked for the change of members, if there is one. */
export function endChange(group: Group, result: MembershipResult): void {
  const { change } = group;
  group.change = undefined;
  change?.done(result);
}
