/**
 * The idle groups that other nodes lead. A group rests here as long as it is on its leader's list, nothing happens in
 * it, and beats arrive. Its election timeout starts with the last beat.
 */
import { type Group, isReported } from './group.ts';
import type { Beat, BeatAnswer, IdleGroup } from './peer-message.ts';
import { silentTicksMax, type RestsInit } from './rests-led.ts';
import type { GroupId, NodeId } from '../types.ts';

/** A node that leads resting groups. */
interface LeaderNode {
  readonly process: number;
  /** The version of its list that is known here; 0 if none is. */
  version: number;
  /** The highest clock reading in its beats. */
  readingMillis: number;
  /** When the last beat with the known list arrived: in ticks, and on this node's clock. */
  heardTick: number;
  seenAtMillis: number;
  /** The groups on the list that rest here, and those that do not. */
  readonly resting: Set<Group>;
  readonly awake: Set<GroupId>;
  /** The groups that woke here since the last answer. The leader must learn of that before they rest again. */
  readonly unreported: Set<Group>;
}

/** The resting groups of a node that other nodes lead. */
export class FollowedRests {
  readonly #init: RestsInit;
  /** The leaders of such groups that are not silent, by node. */
  readonly #leaders = new Map<NodeId, LeaderNode>();
  #ticks = 0;

  constructor(init: RestsInit) {
    this.#init = init;
  }

  tick(ticks: number): void {
    this.#ticks = ticks;
  }

  /** The leaders whose last beat is too old. */
  silent(): NodeId[] {
    const silentMax = silentTicksMax(this.#init.options);
    const nodes: NodeId[] = [];
    for (const [node, { heardTick }] of this.#leaders)
      if (this.#ticks - heardTick >= silentMax) nodes.push(node);
    return nodes;
  }

  /** The groups that rest with this leader. */
  withLeader(node: NodeId): Group[] {
    return [...(this.#leaders.get(node)?.resting ?? [])];
  }

  /** Forgets a leader that is lost or silent, after its groups were woken. */
  forget(node: NodeId): void {
    this.#leaders.delete(node);
  }

  /** Wakes the group. The next answer reports that to its leader's node. */
  wake(group: Group, from: NodeId, aheadMillis: number): void {
    const leader = this.#leaders.get(from);
    if (leader === undefined) return;
    leader.resting.delete(group);
    leader.awake.add(group.id);
    leader.unreported.add(group);
    group.core.rest.endAsFollower({
      silentTicks: this.#ticks - leader.heardTick,
      timeMillis: leader.readingMillis + aheadMillis,
      ageMillis: this.#init.monotonicMillis() - leader.seenAtMillis,
    });
  }

  /** Whether the beat is from another process than the earlier ones, so that its clock is another one too. */
  isOfAnotherProcess({ from, process }: Beat): boolean {
    const leader = this.#leaders.get(from);
    return leader !== undefined && leader.process !== process;
  }

  /**
   * Handles a beat and returns the answer, if there is one. Calls `rest` and `wake` for groups that begin or cease to
   * rest.
   */
  receive(beat: Beat, rest: (group: Group) => void, wake: (group: Group) => void): BeatAnswer | undefined {
    const { from, process, version, readingMillis, groups } = beat;
    const leader = this.#leaders.get(from) ?? this.#meet(beat);
    // A newer beat overtook this one.
    if (readingMillis < leader.readingMillis) return undefined;
    // A group that is no longer on the list resumes as if this beat had not arrived, because the beat does not cover
    // it.
    if (groups !== undefined && version !== leader.version)
      this.#take(leader, { ...beat, groups }, rest, wake);
    if (version === leader.version) {
      leader.readingMillis = readingMillis;
      leader.heardTick = this.#ticks;
      leader.seenAtMillis = this.#init.monotonicMillis();
    }
    leader.unreported.clear();
    return {
      kind: 'beatAnswer',
      from: this.#init.id,
      process,
      version: leader.version,
      awake: [...leader.awake],
    };
  }

  #meet({ from, process, readingMillis }: Beat): LeaderNode {
    const leader: LeaderNode = {
      process,
      version: 0,
      readingMillis,
      heardTick: this.#ticks,
      seenAtMillis: this.#init.monotonicMillis(),
      resting: new Set(),
      awake: new Set(),
      unreported: new Set(),
    };
    this.#leaders.set(from, leader);
    return leader;
  }

  /** Takes over a new list. */
  #take(
    leader: LeaderNode,
    { from, version, readingMillis, groups }: Beat & { readonly groups: readonly IdleGroup[] },
    rest: (group: Group) => void,
    wake: (group: Group) => void,
  ): void {
    leader.version = version;
    const listed = new Set<Group>();
    leader.awake.clear();
    for (const idle of groups) {
      const group = this.#init.groupOf(idle.group);
      if (group === undefined || !this.#agrees(leader, group, from, idle)) {
        if (group !== undefined && leader.resting.has(group)) wake(group);
        leader.awake.add(idle.group);
        continue;
      }
      listed.add(group);
      // When the leader read the group's time, its clock was below `readingMillis + 1`: see `Beat`.
      const aheadMillis = idle.timeMillis - (readingMillis + 1);
      group.rest = { kind: 'followed', leader: from, aheadMillis };
      if (leader.resting.has(group)) continue;
      leader.resting.add(group);
      rest(group);
    }
    for (const group of leader.resting) {
      if (listed.has(group)) continue;
      wake(group);
      leader.awake.delete(group.id);
    }
  }

  /** Whether a group may rest here. For a group that rests already, only the leader's description is compared. */
  #agrees(
    { resting, unreported }: LeaderNode,
    group: Group,
    leader: NodeId,
    { term, index }: IdleGroup,
  ): boolean {
    const { core, incoming } = group;
    if (!core.rest.agreesTo({ leader, term, index })) return false;
    if (resting.has(group)) return true;
    if (group.rest !== undefined || incoming !== undefined || this.#init.isActive(group)) return false;
    if (unreported.has(group)) return false;
    return core.isAtRest && isReported(group);
  }
}
