/** What the driver tells and asks the state machine of a group, and whoever wants something of a group. Types only. */
import type { MembershipRefusal } from '../membership.ts';
import type { Entry, GroupClock, GroupConfig, NodeId, SnapshotMeta } from '../types.ts';

/**
 * A state as of the moment it was asked for, written down piece by piece, whatever is applied meanwhile. Each call does
 * a slice of work that does not grow with the state.
 */
export interface SnapshotSource {
  /** The next chunk, or undefined at the end. The caller may keep it. */
  next(): Uint8Array | undefined;
  /** Nobody wants the rest: what was kept for it is freed. */
  abandon(): void;
}

/** A state that is built beside the present one, which goes on until `install`. Each call does a slice of work. */
export interface SnapshotTarget {
  /** The next chunk, in order. @throws if it belongs to no sound snapshot: then nothing here is of use any more */
  add(chunk: Uint8Array): void;
  /** All chunks were added. @throws if they are not one whole, sound snapshot */
  complete(): void;
  /** From now on this is the state. Only after `complete`; takes no time to speak of. */
  install(): void;
}

/** The state machine of one group. All calls come from within a turn; none may call back into the driver's turn. */
export interface GroupApplication {
  readonly clock: GroupClock;
  /** The next command to replicate, or undefined. Asked once per turn while this node leads. */
  takeProposal(): Uint8Array | undefined;
  /** What became of the last `takeProposal`: its place in the log, or undefined if it was refused. */
  proposed(entry: Entry | undefined): void;
  /** Called once per entry, in log order, no-ops and configurations included. Must be deterministic. */
  apply(entry: Entry): void;
  /** Whether applying this entry may take milliseconds, whatever its size: then a turn applies no other behind it. */
  isSlowToApply?(entry: Entry): boolean;
  /** Begins to write down the state after the last applied entry. One at a time: a new one ends the one before. */
  snapshot(): SnapshotSource;
  /** Begins to build the state of a snapshot. Nothing changes before it is installed. */
  restore(meta: SnapshotMeta): SnapshotTarget;
  /**
   * The configuration in effect: after the entry or snapshot that brought it was applied, and when the group is
   * added. A change of voters is seen twice, the first time with `outgoing` voters.
   */
  configChanged?(config: GroupConfig): void;
  /** Role, term or leader changed. */
  statusChanged(status: LeadershipStatus): void;
}

export interface LeadershipStatus {
  readonly isLeader: boolean;
  readonly term: number;
  readonly leader: NodeId;
}

/**
 * What became of a change of members. `ok`: `config` is in effect on this node, a quorum of the new voters knows, and
 * nothing of the change is left to do. A refusal says that nothing was changed; after `unknownOutcome`, when this node
 * lost the lead midway, the change may yet complete under another leader: look at the configuration of the group.
 */
export type MembershipResult =
  | { readonly ok: true; readonly config: GroupConfig }
  | { readonly ok: false; readonly reason: MembershipRefusal | 'unknownOutcome' };

/** Called once, from within a turn. */
export type MembershipDone = (result: MembershipResult) => void;

/** Told once, from within a turn: the index this node has applied and may be read at, or undefined: ask again. */
export type ReadDone = (index: number | undefined) => void;
