/**
 * The idle groups that others lead: which of them rest here, by the lists of their leaders' nodes. A group rests here as long
 * as it is on the list, nothing happens in it, and beats come; its election timeout begins with the last beat.
 */
import { type Group, isTold } from './group.ts';
import type { Beat, BeatAnswer, IdleGroup } from './peer-message.ts';
import { silentTicksMax, type RestsInit } from './rests-led.ts';
import type { GroupId, NodeId } from '../types.ts';

/** The node of a leader of groups that rest. */
interface LeaderNode {
  readonly process: number;
  /** Of its list, as far as it is known here; 0 if none is. */
  version: number;
  /** The highest of its beats. */
  readingMillis: number;
  /** When a beat of the list that is known here came last: in ticks, and on this node's clock. */
  heardTick: number;
  seenAtMillis: number;
  /** Of those on the list: which rest here, and which do not. */
  readonly resting: Set<Group>;
  readonly awake: Set<GroupId>;
  /** Those that woke here since the last answer: its node is to hear of that before they rest again. */
  readonly untold: Set<Group>;
}

export class FollowedRests {
  readonly #init: RestsInit;
  /** By node: those that have groups in common with this one and are not silent. */
  readonly #leaders = new Map<NodeId, LeaderNode>();
  #ticks = 0;

  constructor(init: RestsInit) {
    this.#init = init;
  }

  tick(ticks: number): void {
    this.#ticks = ticks;
  }

  /** Those that were not heard for too long. */
  silent(): NodeId[] {
    const silentMax = silentTicksMax(this.#init.options);
    const nodes: NodeId[] = [];
    for (const [node, { heardTick }] of this.#leaders)
      if (this.#ticks - heardTick >= silentMax) nodes.push(node);
    return nodes;
  }

  /** Those that rest with this leader. */
  withLeader(node: NodeId): Group[] {
    return [...(this.#leaders.get(node)?.resting ?? [])];
  }

  /** Its node is gone or silent, and its groups were woken. */
  forget(node: NodeId): void {
    this.#leaders.delete(node);
  }

  /** The group goes on by itself; its leader's node is told with the next answer. */
  wake(group: Group, from: NodeId, aheadMillis: number): void {
    const leader = this.#leaders.get(from);
    if (leader === undefined) return;
    leader.resting.delete(group);
    leader.awake.add(group.id);
    leader.untold.add(group);
    group.core.rest.endAsFollower({
      silentTicks: this.#ticks - leader.heardTick,
      timeMillis: leader.readingMillis + aheadMillis,
      ageMillis: this.#init.monotonicMillis() - leader.seenAtMillis,
    });
  }

  /** Is it another process than the one whose beats were heard, so that its clock is another one, too? */
  isOfAnotherProcess({ from, process }: Beat): boolean {
    const leader = this.#leaders.get(from);
    return leader !== undefined && leader.process !== process;
  }

  /** A beat came. `rest` and `wake` are told which groups begin and cease to rest; the answer is returned. */
  receive(beat: Beat, rest: (group: Group) => void, wake: (group: Group) => void): BeatAnswer | undefined {
    const { from, process, version, readingMillis, groups } = beat;
    const leader = this.#leaders.get(from) ?? this.#meet(beat);
    // It was overtaken.
    if (readingMillis < leader.readingMillis) return undefined;
    // Those that are not on it any more go on as if this beat had not come: it says nothing of them.
    if (groups !== undefined && version !== leader.version)
      this.#take(leader, { ...beat, groups }, rest, wake);
    if (version === leader.version) {
      leader.readingMillis = readingMillis;
      leader.heardTick = this.#ticks;
      leader.seenAtMillis = this.#init.monotonicMillis();
    }
    leader.untold.clear();
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
      untold: new Set(),
    };
    this.#leaders.set(from, leader);
    return leader;
  }

  /** The list is another one. */
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
      // When the leader told the time of the group, its clock had not reached `readingMillis + 1`: see `Beat`.
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

  /** What rests here already needs no other look than at what the leader says of it. */
  #agrees(
    { resting, untold }: LeaderNode,
    group: Group,
    leader: NodeId,
    { term, index }: IdleGroup,
  ): boolean {
    const { core, incoming } = group;
    if (!core.rest.agreesTo({ leader, term, index })) return false;
    if (resting.has(group)) return true;
    if (group.rest !== undefined || incoming !== undefined || this.#init.isActive(group)) return false;
    if (untold.has(group)) return false;
    return core.isAtRest && isTold(group);
  }
}
