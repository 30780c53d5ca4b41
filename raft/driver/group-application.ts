/**
 * The interfaces between the driver and the state machine of a group, and the results of requests to a group. Types
 * only.
 */
import type { MembershipRefusal } from '../membership.ts';
import type { Entry, GroupClock, GroupConfig, NodeId, SnapshotMeta } from '../types.ts';

/**
 * The state at the moment the snapshot began, serialized chunk by chunk while the state machine goes on applying. Each
 * call does an amount of work that does not grow with the state.
 */
export interface SnapshotSource {
  /** The next chunk, at most `CHUNK_BYTES_MAX` bytes; undefined at the end. The caller may keep it. */
  next(): Uint8Array | undefined;
  /** Ends the snapshot early and frees what was kept for it. */
  abandon(): void;
}

/**
 * A new state that is built from a snapshot while the present one stays in use until `install`. Each call does a
 * bounded amount of work.
 */
export interface SnapshotTarget {
  /**
   * Adds the next chunk, in order.
   *
   * @throws if the chunk is invalid; the target is then unusable.
   */
  add(chunk: Uint8Array): void;
  /**
   * All chunks were added.
   *
   * @throws if they are not one whole, valid snapshot.
   */
  complete(): void;
  /** Makes this the state. Only after `complete`; takes negligible time. */
  install(): void;
}

/**
 * The state machine of one group. The driver makes all calls within a turn; an implementation must not call back into
 * the driver's turn.
 */
export interface GroupApplication {
  readonly clock: GroupClock;
  /** The next command to replicate, or undefined. Called at most once per turn while this node leads. */
  takeProposal(): Uint8Array | undefined;
  /** Reports the result of the last `takeProposal`: its entry in the log, or undefined if it was refused. */
  proposed(entry: Entry | undefined): void;
  /**
   * Applies an entry. Called once per entry, in log order, including no-ops and configurations. Must be deterministic.
   */
  apply(entry: Entry): void;
  /** Whether applying this entry may take milliseconds. A turn applies no entry of the group after such a one. */
  isSlowToApply?(entry: Entry): boolean;
  /** Begins a snapshot of the state after the last applied entry. A new snapshot ends the previous one. */
  snapshot(): SnapshotSource;
  /** Begins to build a state from a snapshot. Nothing changes before it is installed. */
  restore(meta: SnapshotMeta): SnapshotTarget;
  /**
   * Reports the configuration in effect, after the entry or snapshot that brought it, and when the group is added. A
   * change of voters is reported twice, first with `outgoing` voters.
   */
  configChanged?(config: GroupConfig): void;
  /** Reports that the role, the term or the leader changed. */
  statusChanged(status: LeadershipStatus): void;
}

/** What an application knows about the leadership of its group. `leader` is `NO_NODE` if none is known. */
export interface LeadershipStatus {
  readonly isLeader: boolean;
  readonly term: number;
  readonly leader: NodeId;
}

/**
 * The result of a change of members.
 *
 * - `ok: true`: `config` is in effect on this node, a quorum of the new voters knows it, and the change is complete.
 * - a refusal: nothing was changed.
 * - `unknownOutcome`: this node lost the leadership midway. Another leader may still complete the change, so check the
 *   configuration of the group.
 */
export type MembershipResult =
  | { readonly ok: true; readonly config: GroupConfig }
  | { readonly ok: false; readonly reason: MembershipRefusal | 'unknownOutcome' };

/** Receives the result of a change of members, once, within a turn. */
export type MembershipDone = (result: MembershipResult) => void;

/**
 * Receives the result of a read request, once, within a turn: an index that this node has applied, or undefined if the
 * caller must ask again.
 */
export type ReadDone = (index: number | undefined) => void;
