/**
 * Idle groups rest: while the leader and its followers agree on everything, nobody ticks the group and no
 * heartbeats are sent in it. Their nodes exchange beats for all such groups together (driver/rests.ts). This file
 * decides whether a replica may rest, and how it resumes. Beats decide nothing: commits, reads and terms need
 * messages of the group, and any such message ends the rest.
 */
import { assert } from './assert.ts';
import type { CoreState } from './core-state.ts';
import { isJoint } from './membership.ts';
import { isChanging } from './reconfigure.ts';
import { NO_NODE, type NodeId } from './types.ts';

/** A leader lets a group rest whose log ends at `index`, all of it committed. */
export interface RestOffer {
  readonly leader: NodeId;
  readonly term: number;
  readonly index: number;
}

/** How a leader resumes after a rest. */
export interface LeaderAwake {
  /** Ticks since heartbeats were last due; less than `heartbeatTicks`. */
  readonly heartbeatElapsedTicks: number;
  /** Ticks since a member's node last confirmed that the member rests; undefined if it did not recently. */
  readonly heardTicksAgo: (member: NodeId) => number | undefined;
}

/** How a follower resumes after a rest: the last news of its leader's node. */
export interface FollowerAwake {
  /** Ticks since that news. */
  readonly silentTicks: number;
  /** The leader's group time according to that news. */
  readonly timeMillis: number;
  /** Milliseconds since that news, on this replica's clock. */
  readonly ageMillis: number;
}

/**
 * The rules of rest for one replica. Only the driver knows whether a group rests; a core that nobody calls notices
 * nothing.
 */
export class CoreRest {
  readonly #state: CoreState;

  constructor(state: CoreState) {
    this.#state = state;
  }

  /**
   * Whether a group that this node leads may rest: every member answers and has the whole log, so heartbeats
   * would carry nothing but the time.
   */
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

  /** Whether this node follows that leader in that term, and has all of its log, committed. */
  agreesTo({ leader, term, index }: RestOffer): boolean {
    const state = this.#state;
    if (state.role !== 'follower' || state.leader !== leader || state.term !== term) return false;
    const { last, committed } = state.log;
    // The leader's time is usable only if the last entry is of its term: see the group clock.
    return last.index === index && last.term === term && committed === index;
  }

  /** The leader's estimate of group time, for its followers. */
  get timeMillis(): number {
    return this.#state.clock.nowMillis();
  }

  /**
   * Resumes a leader, in the middle of a round of check-quorum in which the members that answered during the rest
   * count. The round began with the oldest of these answers, so none counts for longer than an answer to a
   * heartbeat would.
   */
  endAsLeader({ heartbeatElapsedTicks, heardTicksAgo }: LeaderAwake): void {
    const { leadership, log, id, options } = this.#state;
    assert(leadership !== undefined, 'a replica that led while the group rested must lead when it resumes');
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

  /** Resumes a follower, as if the last news of the leader's node had been a heartbeat in the group. */
  endAsFollower({ silentTicks, timeMillis, ageMillis }: FollowerAwake): void {
    const state = this.#state;
    assert(
      state.role === 'follower',
      'a replica that followed while the group rested must follow when it resumes',
    );
    state.electionElapsedTicks = silentTicks;
    state.observeLeaderTime(state.term, timeMillis, ageMillis);
  }
}
