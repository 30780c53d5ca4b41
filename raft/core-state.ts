/**
 * The state of one replica of one group, and the few moves every role shares: changing term and role, and
 * sending. What waits for the disk is decided here, in `send`, and nowhere else.
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

export type Role = 'follower' | 'preCandidate' | 'candidate' | 'leader';

/** All counts are ticks of the driver's clock; bytes include a share per entry. */
export interface RaftOptions {
  readonly heartbeatTicks: number;
  /** The minimum election timeout; the actual one is drawn anew from [1, 2) times this. */
  readonly electionTicks: number;
  /** An append message carries at most this many bytes (but always at least one entry). */
  readonly appendBytesMax: number;
  readonly inflight: InflightLimits;
  /** A leader refuses proposals while this many bytes are appended but not committed. */
  readonly uncommittedBytesMax: number;
}

export const RAFT_DEFAULTS: RaftOptions = {
  heartbeatTicks: 5,
  electionTicks: 30,
  appendBytesMax: 64 << 10,
  inflight: { messagesMax: 256, bytesMax: 192 << 10 },
  uncommittedBytesMax: 32 << 20,
};

/** Returns a whole number in [0, bound). The only randomness of the core, so that a seed replays a run. */
export type RandomBelow = (bound: number) => number;

/**
 * The durability rule. A vote, a request for votes and an acknowledgement of entries are promises about what is
 * on this node's disk, so they leave only after the write that makes them true. Everything else may leave at
 * once; a leader's appends do, in parallel with its own write (Raft thesis, 10.2.1). Vote requests wait as well:
 * a candidate that crashed after advertising entries it never wrote could count an old grant for a log it lost.
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

export class CoreState {
  readonly id: NodeId;
  readonly options: RaftOptions;
  readonly log: RaftLog;
  readonly clock: GroupClock;
  readonly random: RandomBelow;
  /** The one in effect: of the last `config` entry applied, or of the snapshot or the start before it. */
  config: GroupConfig;

  /** Never decreases. */
  term: number;
  /** The placement that removed this replica before it came back; 0 if none did. See raft/README.md. */
  readonly removedAt: number;
  /** Changes only together with the term, or from none to someone. */
  vote: NodeId;
  /** What the disk holds of term, vote and commit. */
  written: HardState;
  /** Changes by `becomeX` alone. */
  #role: Role = 'follower';
  leader: NodeId = NO_NODE;
  /** Invariant: there is one exactly while `role` is 'leader', made for this term. */
  leadership: Leadership | undefined;

  electionElapsedTicks = 0;
  electionTimeoutTicks = 0;
  /** This replica should lead when it can: it is the first to campaign. */
  isPreferred: boolean;

  /** Candidates: who answered what. */
  readonly votes = new Map<NodeId, boolean>();

  /** Reads that were confirmed and are not handed out, perhaps after the office that confirmed them. */
  readonly confirmedReads: { readonly ticket: number; readonly index: number }[] = [];
  // Neither is used twice in the life of this process, so they outlive the office.
  lastReadTicket = 0;
  /** The number of the last question whether this node still leads. */
  readRound = 0;

  /** Messages that may leave now. */
  readonly outgoing: Message[] = [];
  /** Messages that leave once everything that is now in memory is on disk. */
  readonly afterSync: Message[] = [];
  /** A snapshot that replaced the log in memory and is not on disk yet. */
  pendingInstall: InstallSnapshot | undefined;
  /** Whether this node should lead. */
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

  send(message: Message): void {
    assert(message.term > 0, 'a {} needs a term', message.type);
    (waitsForDisk(message) ? this.afterSync : this.outgoing).push(message);
  }

  resetElectionTimeout(): void {
    this.electionElapsedTicks = 0;
    const minimum = this.options.electionTicks;
    if (this.willingness === 'reluctant') {
      this.letOthersTry();
      return;
    }
    // The others start a little later than a preferred leader, so that it usually runs unopposed. Only at first: two
    // replicas may both believe to be preferred while that changes, and would split the votes for ever.
    const headStart = Math.ceil(minimum / 5);
    this.electionTimeoutTicks =
      this.isPreferred && this.role === 'follower'
        ? minimum
        : minimum + headStart + this.random(minimum - headStart);
  }

  /** Everybody else has had a try before it campaigns. */
  letOthersTry(): void {
    const minimum = this.options.electionTicks;
    this.electionTimeoutTicks = 2 * minimum + this.random(minimum);
  }

  /** Enters `term` (or stays in it) without a role yet. The vote is forgotten only when the term changes. */
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

  becomeFollower(term: number, leader: NodeId): void {
    this.#enterTerm(term);
    this.#role = 'follower';
    this.leader = leader;
  }

  /** Asks whether an election could be won, without disturbing anyone: neither term nor vote change. */
  becomePreCandidate(): void {
    assert(this.role !== 'leader', 'a leader does not campaign');
    this.#role = 'preCandidate';
    this.leader = NO_NODE;
    this.votes.clear();
    this.resetElectionTimeout();
  }

  becomeCandidate(): void {
    assert(this.role !== 'leader', 'a leader does not campaign');
    this.#enterTerm(this.term + 1);
    this.#role = 'candidate';
    this.vote = this.id;
  }

  /** The caller appends the no-op that every term begins with. */
  becomeLeader(): Leadership {
    assert(this.role === 'candidate', 'only a candidate becomes leader, not a {}', this.role);
    this.#enterTerm(this.term);
    this.#role = 'leader';
    this.leader = this.id;
    const leadership = new Leadership(this.id, this.options.inflight);
    const noop = this.log.lastIndex + 1;
    for (const member of membersOf(this.config)) leadership.addProgress(member, { next: noop, since: noop });
    const own = leadership.progress.get(this.id);
    assert(own !== undefined, 'a leader is a voter');
    own.match = this.log.stable;
    own.heard();
    this.leadership = leadership;
    return leadership;
  }

  /** The last entry changed: group time now follows the timeline of the term that stamped it. */
  anchorClockToLog(): void {
    const last = this.log.last;
    if (last.index > 0) this.clock.anchor(last.term, last.timeMillis);
  }

  /** A leader showed its time. It counts only if the last entry is that leader's own: see the group clock. */
  observeLeaderTime(term: number, timeMillis: number, ageMillis = 0): void {
    if (term === this.log.last.term) this.clock.anchor(term, timeMillis, ageMillis);
  }
}
