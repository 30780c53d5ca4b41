/**
 * The idle groups that this node leads: which of them rest, and the beats that stand for their heartbeats, one per follower's
 * node. Each beat names a version of the list of these groups, and brings the list until the follower has it. A follower's
 * answer counts for the groups that were on the list it has, but for those that it names as not resting there.
 */
import type { RaftOptions } from '../core-state.ts';
import { type Group, isTold } from './group.ts';
import { membersOf } from '../membership.ts';
import type { Beat, BeatAnswer, IdleGroup, PeerMessage } from './peer-message.ts';
import type { GroupId, NodeId } from '../types.ts';

/** In election timeouts: who rests sooner wakes all others of the group for nothing. */
const QUIET_TIMEOUTS = 2;

export interface RestsInit {
  readonly id: NodeId;
  readonly options: RaftOptions;
  /** Another number in each process: what one was told, or counts, is nothing to the next. */
  readonly process: number;
  /** Never runs back; its origin does not matter. */
  readonly monotonicMillis: () => number;
  readonly post: (to: NodeId, message: PeerMessage) => void;
  readonly groupOf: (group: GroupId) => Group | undefined;
  /** Something is to be done with the group in the next turn. */
  readonly isActive: (group: Group) => boolean;
}

/** The node of a follower of some group that rests, or did. */
interface FollowerNode {
  /** Those that rest and of which it is a member. */
  readonly groups: Set<Group>;
  /** The version of the list that it has, by its last answer; 0 before that. */
  version: number;
  /** When it answered last, or when the first of these groups came to rest. */
  heardTick: number;
}

/**
 * After so many ticks without a word of a node, the groups it shares go on by themselves: before a follower's election could be
 * due, and soon enough for a leader to step down as early as it would have otherwise.
 */
export function silentTicksMax({ electionTicks }: RaftOptions): number {
  return electionTicks - 1;
}

export class LedRests {
  readonly #init: RestsInit;
  readonly #followers = new Map<NodeId, FollowerNode>();
  /** Of the list of these groups. */
  #version = 0;
  #ticks = 0;

  constructor(init: RestsInit) {
    this.#init = init;
  }

  /** Time passed. Returns whether a beat is due, which is the moment to rest. */
  tick(ticks: number): boolean {
    this.#ticks = ticks;
    return ticks % this.#init.options.heartbeatTicks === 0;
  }

  /** Those that were not heard for too long. */
  silent(): NodeId[] {
    const silentMax = silentTicksMax(this.#init.options);
    const nodes: NodeId[] = [];
    for (const [node, { heardTick }] of this.#followers)
      if (this.#ticks - heardTick >= silentMax) nodes.push(node);
    return nodes;
  }

  /** Lets the group rest if this node leads it and nothing has happened in it for a while. Returns whether it does. */
  maybeRest(group: Group): boolean {
    const { core } = group;
    const { id, options, isActive } = this.#init;
    if (core.role !== 'leader' || this.#ticks - group.busyTick < QUIET_TIMEOUTS * options.electionTicks)
      return false;
    if (!core.isAtRest || !core.rest.mayBegin || !isTold(group) || isActive(group)) return false;
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

  /** The group goes on by itself. */
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

  /** Those that rest with this follower. */
  withFollower(node: NodeId): Group[] {
    return [...(this.#followers.get(node)?.groups ?? [])];
  }

  /** Its node is gone or silent, and its groups were woken: what it has of the list is not known. */
  forget(node: NodeId): void {
    this.#followers.delete(node);
  }

  /** One beat for each node that has a list, or is to have one. */
  beat(): void {
    const { id, process, monotonicMillis, post } = this.#init;
    for (const [node, follower] of this.#followers) {
      const isKnown = follower.version === this.#version;
      if (isKnown && follower.groups.size === 0) {
        this.#followers.delete(node);
        continue;
      }
      const groups = isKnown ? undefined : Array.from(follower.groups, idleGroup);
      // Read after the group times of the list: see `Beat`.
      const readingMillis = Math.floor(monotonicMillis());
      const beat: Beat = { kind: 'beat', from: id, process, version: this.#version, readingMillis };
      post(node, groups === undefined ? beat : { ...beat, groups });
    }
  }

  /** The groups that do not rest at the follower's node that answers: for them it is no evidence. */
  awakeAt({ process, version, awake }: BeatAnswer): Group[] {
    if (process !== this.#init.process) return [];
    const groups: Group[] = [];
    for (const id of awake) {
      const group = this.#init.groupOf(id);
      // One that rests since is on a list that the follower had not seen.
      if (group?.rest?.kind === 'led' && group.rest.version <= version) groups.push(group);
    }
    return groups;
  }

  /** A follower's node has heard a beat, and the groups that do not rest there were woken. */
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
