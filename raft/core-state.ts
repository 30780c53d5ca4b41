/**
 * The state of one replica of one Raft group, and the operations that all roles share: changing term and role, and
 * sending. `send` is the only place that decides whether a message has to wait for the disk.
 */
import { assert } from './assert.ts';
import { Leadership } from './leadership.ts';
import type { RaftLog } from './log.ts';
import { isVoterOf, membersOf, simpleConfig } from './membership.ts';
import type { InflightLimits } from './progress.ts';
import type { Willingness } from './willingness.ts';
import {
  NO_NODE,
  type GroupClock,
  type GroupConfig,
  type HardState,
  type InstallSnapshot,
  type Message,
  type NodeId,
} from './types.ts';

/** The roles of the Raft paper (figure 4) and the pre-candidate of the thesis (9.6). */
export type Role = 'follower' | 'preCandidate' | 'candidate' | 'leader';

/**
 * The settings of a core. A tick is one period of the driver's timer. Bytes include a fixed overhead per entry
 * (`entryBytes`).
 */
export interface RaftOptions {
  /** A leader sends a heartbeat at this interval. Must be less than `electionTicks`. */
  readonly heartbeatTicks: number;
  /**
   * The minimum election timeout. The actual one is drawn anew each time: from 1 to 2 times this; from 2 to 3 times on
   * a node that lets others try first (`letOthersTry`).
   */
  readonly electionTicks: number;
  /** An append message carries at most this many bytes (but always at least one entry). */
  readonly appendBytesMax: number;
  /** How many appends a leader sends to one peer before that peer acknowledges the first. */
  readonly inflight: InflightLimits;
  /** A leader refuses proposals while this many bytes are appended but not committed. */
  readonly uncommittedBytesMax: number;
}

/** The settings in production. */
export const RAFT_DEFAULTS: RaftOptions = {
  heartbeatTicks: 5,
  electionTicks: 30,
  appendBytesMax: 64 << 10,
  inflight: { messagesMax: 256, bytesMax: 192 << 10 },
  uncommittedBytesMax: 32 << 20,
};

/** Returns an integer in [0, bound). The core has no other randomness, so a seed replays a run exactly. */
export type RandomBelow = (bound: number) => number;

/**
 * The durability rule: whether `message` may leave only after everything now in memory is on disk.
 *
 * Votes, requests for votes and acknowledgements of entries are promises about this node's disk, so they wait for
 * the write that makes them true. All other messages leave at once; in particular a leader sends appends while its
 * own write is still running (Raft thesis, 10.2.1). Requests for votes wait because they advertise entries: a
 * candidate that crashed before it wrote these could later count a grant for a log that it lost.
 */
export function waitsForDisk(message: Message): boolean {
  switch (message.type) {
    case 'vote':
    case 'voteResponse':
    case 'appendResponse':
      return true;
    case 'preVote':
    case 'preVoteResponse':
    case 'append':
    case 'heartbeat':
    case 'heartbeatResponse':
    case 'snapshot':
    case 'timeoutNow':
      return false;
  }
}

/** The mutable state of one replica. The role modules (election.ts, leader.ts, follower.ts) read and change it. */
export class CoreState {
  readonly id: NodeId;
  readonly options: RaftOptions;
  readonly log: RaftLog;
  readonly clock: GroupClock;
  readonly random: RandomBelow;
  /** The configuration in effect: of the last `config` entry applied, else of the snapshot, else of the start. */
  config: GroupConfig;

  /** Never decreases. */
  term: number;
  /**
   * The version of the placement that last removed this replica; 0 if it was never removed. See docs/internals/raft.md.
   */
  readonly removedAt: number;
  /** The candidate this node voted for in `term`. Changes only with the term, or from `NO_NODE` to a node. */
  vote: NodeId;
  /** The hard state as it is on disk. */
  written: HardState;
  /** Changed only by the `become...` methods. */
  #role: Role = 'follower';
  leader: NodeId = NO_NODE;
  /** The leader's bookkeeping for this term. Invariant: defined exactly while `role` is 'leader'. */
  leadership: Leadership | undefined;

  electionElapsedTicks = 0;
  electionTimeoutTicks = 0;
  /** The preferred leader has the shortest election timeout, so it usually leads when it can. */
  isPreferred: boolean;

  /** On a candidate or pre-candidate: the answers so far, by voter; true is a grant. */
  readonly votes = new Map<NodeId, boolean>();

  /** Confirmed reads that `takeReads` has not returned yet. They stay valid after this node stops leading. */
  readonly confirmedReads: { readonly ticket: number; readonly index: number }[] = [];
  // These two counters survive a leadership: neither number is used twice in the life of this process.
  lastReadTicket = 0;
  /** The number of the last leadership check (read-index.ts) that this node sent. */
  readRound = 0;

  /** Messages that may leave now. */
  readonly outgoing: Message[] = [];
  /** Messages that leave once everything that was in memory when they were sent is on disk. */
  readonly afterSync: Message[] = [];
  /** A snapshot that replaced the log in memory and is not on disk yet. */
  pendingInstall: InstallSnapshot | undefined;
  /** Whether this node should lead, see willingness.ts. */
  willingness: Willingness = 'willing';

  constructor(init: {
    id: NodeId;
    voters: readonly NodeId[];
    hardState: HardState;
    removedAt: number;
    log: RaftLog;
    clock: GroupClock;
    random: RandomBelow;
    options: RaftOptions;
    isPreferred: boolean;
  }) {
    assert(
      init.options.electionTicks > init.options.heartbeatTicks,
      'electionTicks must exceed heartbeatTicks',
    );
    const { term, vote } = init.hardState;
    assert(term >= init.log.last.term, "term {} is below the log's {}", term, init.log.last.term);
    this.id = init.id;
    this.config = simpleConfig(init.voters);
    this.term = term;
    this.vote = vote;
    this.written = init.hardState;
    this.removedAt = init.removedAt;
    this.log = init.log;
    this.clock = init.clock;
    this.random = init.random;
    this.options = init.options;
    this.isPreferred = init.isPreferred;
    this.resetElectionTimeout();
    this.anchorClockToLog();
  }

  get role(): Role {
    return this.#role;
  }

  isVoter(): boolean {
    return isVoterOf(this.config, this.id);
  }

  /** Queues a message, in `outgoing` or in `afterSync` (see `waitsForDisk`). */
  send(message: Message): void {
    assert(message.term > 0, 'a {} needs a term', message.type);
    (waitsForDisk(message) ? this.afterSync : this.outgoing).push(message);
  }

  /** Restarts the election timer with a newly drawn timeout. */
  resetElectionTimeout(): void {
    this.electionElapsedTicks = 0;
    const minimum = this.options.electionTicks;
    if (this.willingness === 'reluctant') {
      this.letOthersTry();
      return;
    }
    // The others start a little later than the preferred leader, so that it usually runs unopposed. It has this
    // advantage only as a follower: while the preference changes, two replicas may both believe that they are
    // preferred, and candidates that always start at the same time would split the votes forever.
    const headStart = Math.ceil(minimum / 5);
    this.electionTimeoutTicks =
      this.isPreferred && this.role === 'follower'
        ? minimum
        : minimum + headStart + this.random(minimum - headStart);
  }

  /** Draws a timeout so long that every other voter campaigns first. */
  letOthersTry(): void {
    const minimum = this.options.electionTicks;
    this.electionTimeoutTicks = 2 * minimum + this.random(minimum);
  }

  /** Enters `term`, or stays in it, without setting a role. Forgets the vote only when the term changes. */
  #enterTerm(term: number): void {
    assert(term >= this.term, 'term may not go from {} to {}', this.term, term);
    if (term !== this.term) {
      this.term = term;
      this.vote = NO_NODE;
    }
    this.leader = NO_NODE;
    this.leadership = undefined;
    this.votes.clear();
    this.resetElectionTimeout();
  }

  /** `leader` is `NO_NODE` if the leader of `term` is not known yet. */
  becomeFollower(term: number, leader: NodeId): void {
    this.#enterTerm(term);
    this.#role = 'follower';
    this.leader = leader;
  }

  /** Starts a pre-vote, which asks whether an election could be won. Neither the term nor the vote changes. */
  becomePreCandidate(): void {
    assert(this.role !== 'leader', 'a leader must not campaign');
    this.#role = 'preCandidate';
    this.leader = NO_NODE;
    this.votes.clear();
    this.resetElectionTimeout();
  }

  /** Enters the next term and votes for itself. */
  becomeCandidate(): void {
    assert(this.role !== 'leader', 'a leader must not campaign');
    this.#enterTerm(this.term + 1);
    this.#role = 'candidate';
    this.vote = this.id;
  }

  /** The caller then appends the no-op that every term begins with. */
  becomeLeader(): Leadership {
    assert(this.role === 'candidate', 'only a candidate may become leader, not a {}', this.role);
    this.#enterTerm(this.term);
    this.#role = 'leader';
    this.leader = this.id;
    const leadership = new Leadership(this.id, this.options.inflight);
    const noop = this.log.lastIndex + 1;
    for (const member of membersOf(this.config)) leadership.addProgress(member, { next: noop, since: noop });
    const own = leadership.progress.get(this.id);
    assert(own !== undefined, 'a leader must be a voter');
    own.match = this.log.stable;
    own.heard();
    this.leadership = leadership;
    return leadership;
  }

  /** The last entry changed: group time now follows the timeline of the leader that stamped it. */
  anchorClockToLog(): void {
    const last = this.log.last;
    if (last.index > 0) this.clock.anchor(last.term, last.timeMillis);
  }

  /**
   * A message carried its leader's group time. Ignored unless the last entry is of that leader's term: see
   * raft/driver/group-clock.ts.
   *
   * @param ageMillis how long ago the leader had that time, on this replica's clock.
   */
  observeLeaderTime(term: number, timeMillis: number, ageMillis = 0): void {
    if (term === this.log.last.term) this.clock.anchor(term, timeMillis, ageMillis);
  }
}
