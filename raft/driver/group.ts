/** What the driver keeps of one group, and what it tells those who wait for something of it. */
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

export interface Group {
  readonly id: GroupId;
  readonly core: RaftCore;
  readonly app: GroupApplication;
  preferredLeader: NodeId;
  /** In this term: the voters that were asked to take over, and did not. */
  readonly handedTo: Set<NodeId>;
  /** Not handed to its preferred leader before this tick. */
  balanceAtTick: number;
  readonly snapshots: LocalSnapshots;
  /** The snapshot that a leader sends. */
  incoming: IncomingSnapshot | undefined;
  /** It has replaced the core's log, and its state is built; both take effect when that is on disk. */
  installing: { readonly meta: SnapshotMeta; readonly target: SnapshotTarget } | undefined;
  readonly reads: PendingReads;
  /** The change of members that this node proposed. */
  change: { readonly index: number; readonly term: number; readonly done: MembershipDone } | undefined;
  /** What the application was last told. */
  told: LeadershipStatus;
  /** Under which versions of the placement this node offers to hold the group, not on disk yet. Never decreasing. */
  offers: { readonly placement: number; readonly done: () => void }[];
  /** Set while it rests (rests.ts): since which version of this node's list, or with whom, whose clock group time is ahead of. */
  rest:
    | { readonly kind: 'led'; readonly version: number }
    | { readonly kind: 'followed'; readonly leader: NodeId; readonly aheadMillis: number }
    | undefined;
  /** When something happened in it last. */
  busyTick: number;
  /** This node does not hold it any more: nothing that is still on its way may leave. */
  isRemoved: boolean;
}

export interface GroupInit {
  readonly group: GroupId;
  /** Those the group began with, however it changed since; none on a node that joins a running group. */
  readonly voters: readonly NodeId[];
  /** The voter that should lead when it can. */
  preferredLeader: NodeId;
  /** Its state is that of the stored snapshot. */
  readonly app: GroupApplication;
  readonly stored: StoredGroup | undefined;
  /** Of a group that was removed from this node: the version of the cluster's placement that brings it back. */
  readonly placement?: number;
}

/** A group with what the disk held for it. */
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
    'group {} was removed by placement {}: a higher one brings it back, not {}',
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
    told: { isLeader: false, term: 0, leader: NO_NODE },
    offers: returns ? [{ placement, done: () => undefined }] : [],
    rest: undefined,
    busyTick: 0,
    isRemoved: false,
  };
}

/** The group leaves this node: whoever waits for something of it has lost it. */
export function closeGroup(group: Group): void {
  group.isRemoved = true;
  group.snapshots.close();
  group.reads.close();
  endChange(group, { ok: false, reason: 'unknownOutcome' });
}

/** Whoever has to know of role, term and leader was told. */
export function isTold({ core, told }: Group): boolean {
  return told.isLeader === (core.role === 'leader') && told.term === core.term && told.leader === core.leader;
}

/** Tells whoever has to know that role, term or leader changed, if they did. */
export function tellStatus(group: Group): void {
  if (isTold(group)) return;
  const { core, told } = group;
  const isLeader = core.role === 'leader';
  if (told.isLeader && (!isLeader || told.term !== core.term)) group.reads.fail();
  if (told.term !== core.term) group.handedTo.clear();
  group.told = { isLeader, term: core.term, leader: core.leader };
  if (group.change !== undefined && group.change.term !== (isLeader ? core.term : 0)) {
    endChange(group, { ok: false, reason: 'unknownOutcome' });
  }
  group.app.statusChanged(group.told);
}

export function endChange(group: Group, result: MembershipResult): void {
  const { change } = group;
  group.change = undefined;
  change?.done(result);
}
