/**
 * The idle groups that this node leads, and the beats that replace their heartbeats, one per follower's node. Each beat
 * names a version of the list of these groups, and carries the list until the follower has it. A follower's answer
 * counts for the groups on the list it has, except those that it names as awake.
 */
import type { RaftOptions } from '../core-state.ts';
import { type Group, isReported } from './group.ts';
import { membersOf } from '../membership.ts';
import type { Beat, BeatAnswer, IdleGroup, PeerMessage } from './peer-message.ts';
import type { GroupId, NodeId } from '../types.ts';

/**
 * A group must be quiet for this many election timeouts. A group that rests sooner would soon wake all its members
 * again.
 */
const QUIET_TIMEOUTS = 2;

/** What the rests of a node are created with. */
export interface RestsInit {
  readonly id: NodeId;
  readonly options: RaftOptions;
  /** A number that differs between processes: versions and clocks of one process mean nothing to the next. */
  readonly process: number;
  /** Never runs back; its origin does not matter. */
  readonly monotonicMillis: () => number;
  readonly post: (to: NodeId, message: PeerMessage) => void;
  readonly groupOf: (group: GroupId) => Group | undefined;
  /** Whether the group has work in the next turn. */
  readonly isActive: (group: Group) => boolean;
}

/** A node that follows groups that rest, or did. */
interface FollowerNode {
  /** The resting groups that it is a member of. */
  readonly groups: Set<Group>;
  /** The version of the list that it has, from its last answer; 0 before that. */
  version: number;
  /** The tick of its last answer, or when the first of these groups came to rest. */
  heardTick: number;
}

/**
 * After this many ticks without a message from a node, the groups shared with it wake: before an election of a follower
 * could be due, and soon enough for a leader to step down as early as without rests.
 */
export function silentTicksMax({ electionTicks }: RaftOptions): number {
  return electionTicks - 1;
}

/** The resting groups that a node leads. */
export class LedRests {
  readonly #init: RestsInit;
  readonly #followers = new Map<NodeId, FollowerNode>();
  /** The version of the list of these groups. */
  #version = 0;
  #ticks = 0;

  constructor(init: RestsInit) {
    this.#init = init;
  }

  /** Counts a tick. Returns whether a beat is due; only then groups begin to rest. */
  tick(ticks: number): boolean {
    this.#ticks = ticks;
    return ticks % this.#init.options.heartbeatTicks === 0;
  }

  /** The followers' nodes whose last answer is too old. */
  silent(): NodeId[] {
    const silentMax = silentTicksMax(this.#init.options);
    const nodes: NodeId[] = [];
    for (const [node, { heardTick }] of this.#followers)
      if (this.#ticks - heardTick >= silentMax) nodes.push(node);
    return nodes;
  }

  /** Lets the group rest if this node leads it and it has been quiet for long enough. Returns whether it rests now. */
  maybeRest(group: Group): boolean {
    const { core } = group;
    const { id, options, isActive } = this.#init;
    if (core.role !== 'leader' || this.#ticks - group.busyTick < QUIET_TIMEOUTS * options.electionTicks)
      return false;
    if (!core.isAtRest || !core.rest.mayBegin || !isReported(group) || isActive(group)) return false;
    this.#version += 1;
    group.rest = { kind: 'led', version: this.#version };
    for (const node of membersOf(core.config)) {
      if (node === id) continue;
      const follower = this.#followers.get(node) ?? this.#meet(node);
      follower.groups.add(group);
    }
    return true;
  }

  #meet(node: NodeId): FollowerNode {
    const follower = { groups: new Set<Group>(), version: 0, heardTick: this.#ticks };
    this.#followers.set(node, follower);
    return follower;
  }

  /**
   * Wakes the group.
   *
   * @param version that of the list since which the group rests.
   */
  wake(group: Group, version: number): void {
    const { heartbeatTicks } = this.#init.options;
    this.#version += 1;
    for (const { groups } of this.#followers.values()) groups.delete(group);
    group.core.rest.endAsLeader({
      heartbeatElapsedTicks: this.#ticks % heartbeatTicks,
      heardTicksAgo: (node) => {
        const follower = this.#followers.get(node);
        if (follower === undefined || follower.version < version) return undefined;
        const ticksAgo = this.#ticks - follower.heardTick;
        return ticksAgo <= 2 * heartbeatTicks ? ticksAgo : undefined;
      },
    });
  }

  /** The resting groups of this follower. */
  withFollower(node: NodeId): Group[] {
    return [...(this.#followers.get(node)?.groups ?? [])];
  }

  /** Forgets a follower's node that is lost or silent, after its groups were woken: it may not have the list. */
  forget(node: NodeId): void {
    this.#followers.delete(node);
  }

  /** Sends one beat to each node that has a list or needs one. */
  beat(): void {
    const { id, process, monotonicMillis, post } = this.#init;
    for (const [node, follower] of this.#followers) {
      const isKnown = follower.version === this.#version;
      if (isKnown && follower.groups.size === 0) {
        this.#followers.delete(node);
        continue;
      }
      const groups = isKnown ? undefined : Array.from(follower.groups, idleGroup);
      // Must be read after the group times of the list: see `Beat`.
      const readingMillis = Math.floor(monotonicMillis());
      const beat: Beat = { kind: 'beat', from: id, process, version: this.#version, readingMillis };
      post(node, groups === undefined ? beat : { ...beat, groups });
    }
  }

  /** The resting groups that are awake at the node that answers, so that its answer does not count for them. */
  awakeAt({ process, version, awake }: BeatAnswer): Group[] {
    if (process !== this.#init.process) return [];
    const groups: Group[] = [];
    for (const id of awake) {
      const group = this.#init.groupOf(id);
      // A group that came to rest later is on a list that the follower has not seen.
      if (group?.rest?.kind === 'led' && group.rest.version <= version) groups.push(group);
    }
    return groups;
  }

  /** A follower's node answered a beat. Call it after the groups that are awake there were woken. */
  answered({ from, process, version }: BeatAnswer): void {
    const follower = this.#followers.get(from);
    if (follower === undefined || process !== this.#init.process) return;
    follower.version = version;
    follower.heardTick = this.#ticks;
  }
}

function idleGroup({ id: group, core }: Group): IdleGroup {
  return { group, term: core.term, index: core.lastPosition.index, timeMillis: core.rest.timeMillis };
}
