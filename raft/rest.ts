/**
 * Idle groups rest: while nothing differs between a leader and its followers, none of them is ticked and no heartbeat is
 * sent in the group; their nodes tell each other that they are there, for all such groups together (driver/rests.ts). Here
 * is who may rest, and how a replica goes on. A rest decides nothing: commits, reads and terms need messages of the group,
 * and any of those ends it.
 */
import { assert } from './assert.ts';
import type { CoreState } from './core-state.ts';
import { isJoint } from './membership.ts';
import { isChanging } from './reconfigure.ts';
import { NO_NODE, type NodeId } from './types.ts';

/** What a leader says of a group that it lets rest: its log ends at `index`, committed. */
export interface RestOffer {
  readonly leader: NodeId;
  readonly term: number;
  readonly index: number;
}

/** How a leader goes on. */
export interface LeaderAwake {
  /** Since heartbeats were due last; below `heartbeatTicks`. */
  readonly heartbeatElapsedTicks: number;
  /** Ticks since a member's node last showed that it is there, and that the member rests; undefined if it did not lately. */
  readonly heardTicksAgo: (member: NodeId) => number | undefined;
}

/** How a follower goes on: what it heard of its leader's node last. */
export interface FollowerAwake {
  /** Ticks since then. */
  readonly silentTicks: number;
  /** The leader's group time as it was told then. */
  readonly timeMillis: number;
  /** Milliseconds since then on this replica's clock. */
  readonly ageMillis: number;
}

/** The rest of one replica. That it rests is the driver's to know: a core that is asked nothing notices nothing. */
export class CoreRest {
  readonly #state: CoreState;

  constructor(state: CoreState) {
    this.#state = state;
  }

  /** Whether this node leads, and every member is there and has everything: heartbeats tell it nothing but the time. */
  get mayBegin(): boolean {
    const { leadership, log, willingness, config, id } = this.#state;
    if (leadership === undefined || willingness !== 'willing' || !this.#state.isVoter()) return false;
    if (leadership.transferTarget !== NO_NODE || leadership.reads.length > 0) return false;
    if (log.committed !== log.lastIndex || isChanging(this.#state) || isJoint(config)) return false;
    for (const [peer, each] of leadership.progress) {
      if (peer === id) continue;
      if (each.state !== 'replicate' || each.match !== log.lastIndex || !each.heardThisRound) return false;
    }
    return true;
  }

  /** Whether this node follows that leader in that term, and has all of its log. */
  agreesTo({ leader, term, index }: RestOffer): boolean {
    const state = this.#state;
    if (state.role !== 'follower' || state.leader !== leader || state.term !== term) return false;
    const { last, committed } = state.log;
    // The time that the leader tells counts only on a line of its own: see the group clock.
    return last.index === index && last.term === term && committed === index;
  }

  /** The leader's estimate of group time, to tell its followers. */
  get timeMillis(): number {
    return this.#state.clock.nowMillis();
  }

  /**
   * A round of check-quorum goes on to which only those have answered that were heard while the group rested. It began with the
   * oldest of these answers: none counts for longer than that of a heartbeat.
   */
  endAsLeader({ heartbeatElapsedTicks, heardTicksAgo }: LeaderAwake): void {
    const { leadership, log, id, options } = this.#state;
    assert(leadership !== undefined, 'who led while the group rested leads when it goes on');
    assert(heartbeatElapsedTicks < options.heartbeatTicks, 'heartbeats are overdue');
    leadership.heartbeatElapsedTicks = heartbeatElapsedTicks;
    this.#state.electionElapsedTicks = 0;
    for (const [peer, each] of leadership.progress) {
      if (peer === id) continue;
      each.nextRound(log.lastIndex);
      const ticksAgo = heardTicksAgo(peer);
      if (ticksAgo === undefined) continue;
      each.heard();
      this.#state.electionElapsedTicks = Math.max(this.#state.electionElapsedTicks, ticksAgo);
    }
  }

  /** As if what was heard last of the leader's node had been a heartbeat of the group. */
  endAsFollower({ silentTicks, timeMillis, ageMillis }: FollowerAwake): void {
    const state = this.#state;
    assert(state.role === 'follower', 'who followed while the group rested follows when it goes on');
    state.electionElapsedTicks = silentTicks;
    state.observeLeaderTime(state.term, timeMillis, ageMillis);
  }
}
