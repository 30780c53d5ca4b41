/** Mutants: the log, its commit index, elections and leadership. */
import type { Mutant } from './mutant.ts';

export const RAFT: readonly Mutant[] = [
  {
    id: 'M3',
    bug: 'entries of earlier terms are committed by counting replicas',
    edits: [{ in: 'advanceCommit', find: '|| state.log.termAt(index) !== state.term)', replace: ')' }],
  },
  {
    id: 'M4',
    bug: 'a new leader appends no no-op',
    edits: [
      {
        in: 'takeLeadership',
        find: 'appendNoop(state, leadership);',
        replace: '',
      },
    ],
  },
  {
    id: 'M7',
    bug: 'a late, short append truncates a log that it matches',
    edits: [
      {
        in: 'RaftLog.maybeAppend',
        find: 'if (firstNew === -1) return lastNew;',
        replace:
          'if (firstNew === -1) { if (lastNew < this.lastIndex && lastNew >= this.committed) this.#truncateFrom(lastNew + 1); return lastNew; }',
      },
    ],
  },
  {
    id: 'M9',
    bug: 'a request is granted before its entry is committed',
    edits: [
      {
        in: 'Waiters.proposed',
        find: 'this.#inflight.push({ index, term, sinceMillis, queuedMillis, waiters });',
        replace:
          "for (const waiter of waiters) waiter.done({ kind: 'decision', decision: { allowed: true, ruleId: waiter.request.ruleId ?? 'default', limit: 1, windowMillis: 1, remaining: 0, retryAfterMillis: 0, resetMillis: 0, decided: { term: entry.term, index: entry.index, timeMillis: entry.timeMillis } } }); return;",
      },
    ],
  },
  {
    id: 'M18',
    bug: 'a leader without a quorum never steps down',
    edits: [
      {
        in: 'tickLeader',
        find: 'if (isCutOff || isInTheWay ||',
        replace: 'if (',
      },
    ],
  },
  {
    id: 'X1',
    bug: 'voters elect candidates whose logs are behind',
    world: 'short-reigns',
    edits: [
      {
        in: 'RaftLog.isUpToDate',
        find: 'return lastTerm > own.term || (lastTerm === own.term && lastIndex >= own.index);',
        replace: 'return lastIndex >= own.index;',
      },
    ],
  },
  {
    id: 'X2',
    bug: 'a heartbeat commits entries that the peer may not hold',
    edits: [
      {
        in: 'sendHeartbeat',
        find: 'commit: Math.min(progress.match, state.log.committed)',
        replace: 'commit: state.log.committed',
      },
    ],
  },
  {
    id: 'X4',
    bug: 'a node forgets its vote within the term',
    edits: [{ in: 'CoreState.#enterTerm', find: 'if (term !== this.term) {', replace: '{' }],
  },
  {
    id: 'L1',
    bug: 'a follower acknowledges its whole log for an append that matches only a part of it',
    law: 'acknowledged entries agree with those of the leader',
    edits: [
      {
        in: 'RaftLog.maybeAppend',
        find: 'if (firstNew === -1) return lastNew;',
        replace: 'if (firstNew === -1) return this.lastIndex;',
      },
    ],
    unitTest: {
      file: 'raft/commit.test.ts',
      why: 'a leader goes back no further than to the last entry that both logs have (conflict hints), so none of its appends merely matches a log that ends otherwise',
    },
  },
  {
    id: 'L2',
    bug: 'an append commits entries that it did not compare',
    law: 'committed entries are equal everywhere',
    edits: [
      {
        in: 'handleAppend',
        find: 'Math.min(message.commit, lastNew)',
        replace: 'Math.min(message.commit, log.lastIndex)',
      },
    ],
    unitTest: {
      file: 'raft/commit.test.ts',
      why: 'a leader goes back no further than to the last entry that both logs have (conflict hints), so none of its appends merely matches a log that ends otherwise',
    },
  },
  {
    id: 'L3',
    bug: 'a late append is acknowledged up to its end without a comparison',
    law: 'a follower holds the entries that it acknowledges',
    edits: [
      {
        in: 'handleAppend',
        find: 'accept(state, message, log.committed);',
        replace:
          'accept(state, message, Math.max(log.committed, message.prevIndex + message.entries.length));',
      },
    ],
  },
  {
    id: 'L4',
    bug: 'a candidate gets votes only if its log is longer, not if it is equal',
    law: 'a quorum makes progress',
    edits: [{ in: 'RaftLog.isUpToDate', find: 'lastIndex >= own.index', replace: 'lastIndex > own.index' }],
  },
  {
    id: 'L5',
    bug: 'half of the voters count as a majority',
    law: 'at every election a majority of disks holds the vote; what is committed is on a majority of disks',
    edits: [
      { in: 'quorumSize', find: 'Math.floor(voterCount / 2) + 1', replace: 'Math.ceil(voterCount / 2)' },
    ],
  },
  {
    id: 'L6',
    bug: 'the new voters alone decide an election',
    law: 'at every election a majority of both halves holds the vote',
    world: 'far-behind',
    faults: ['crashLeader', 'isolateLeader', 'pauseLeader'],
    edits: [
      {
        in: 'jointVoteResult',
        find: 'if (joint.outgoing.length === 0) return incoming;',
        replace: 'return incoming;',
      },
    ],
  },
  {
    id: 'L7',
    bug: 'refused votes count as votes',
    law: 'at every election a majority of disks holds the vote',
    edits: [{ in: 'voteResult', find: 'else if (vote) granted += 1;', replace: 'else granted += 1;' }],
  },
  {
    id: 'L8',
    bug: 'pre-votes count as votes in the election that follows',
    law: 'at every election a majority of disks holds the vote',
    edits: [{ in: 'CoreState.#enterTerm', find: 'this.votes.clear();', replace: '' }],
  },
  {
    id: 'L9',
    bug: 'a voter votes twice in one term',
    law: 'one leader per term; a vote that was promised stays',
    edits: [
      {
        in: 'handleVoteRequest',
        find: '(state.vote === NO_NODE && state.leader === NO_NODE)',
        replace: 'state.leader === NO_NODE',
      },
      {
        in: 'handleVoteRequest',
        find: 'state.vote === NO_NODE || state.vote === message.from,',
        replace: 'true,',
      },
    ],
  },
  {
    id: 'L10',
    bug: 'a follower believes a commit index though its own entry there is of another term',
    law: 'committed entries are equal everywhere',
    edits: [
      {
        in: 'learnCommit',
        find: 'log.termAt(committed.index) !== committed.term',
        replace: 'log.termAt(committed.index) === undefined',
      },
    ],
  },
  {
    id: 'L11',
    bug: 'a leader counts its own entries before they are on its disk',
    faults: ['slowDisk', 'crashLeader', 'huntLeaders'],
    law: 'committed entries are on a quorum of disks',
    edits: [{ in: 'ownLogIsStable', find: 'state.log.stable', replace: 'state.log.lastIndex' }],
  },
  {
    id: 'L13',
    bug: 'entries that were overwritten still count as on disk',
    law: 'nothing is promised before it is on disk',
    edits: [
      {
        in: 'RaftLog.#truncateFrom',
        find: 'this.#stable = Math.min(this.#stable, index - 1);',
        replace: '',
      },
    ],
  },
  {
    id: 'L14',
    bug: 'configurations that were overwritten stay in the list',
    law: 'the configurations are those in the log',
    world: 'far-behind',
    edits: [
      {
        in: 'RaftLog.#truncateFrom',
        find: 'this.#configs = this.#configs.filter((config) => config < index);',
        replace: '',
      },
    ],
  },
  {
    id: 'L15',
    bug: 'a replica campaigns though it has not applied a committed change of members',
    law: 'a candidate asks the voters that decide',
    world: 'far-behind',
    edits: [
      {
        in: 'mayCampaign',
        find: 'state.pendingInstall === undefined && !state.log.hasUnappliedConfig',
        replace: 'state.pendingInstall === undefined',
      },
    ],
  },
  {
    id: 'L16',
    bug: 'a leader that was deposed and leads again still counts its old uncommitted bytes',
    features: ['smallLogs'],
    faults: ['isolateLeader', 'pauseLeader'],
    law: 'in health every request is decided',
    edits: [
      {
        in: 'CoreState.#enterTerm',
        find: 'this.leadership = undefined;',
        replace: 'this.kept = this.leadership?.uncommittedBytes ?? this.kept; this.leadership = undefined;',
      },
      {
        in: 'CoreState.becomeLeader',
        find: 'this.leadership = leadership;',
        replace: 'leadership.uncommittedBytes = this.kept ?? 0; this.leadership = leadership;',
      },
    ],
  },
  {
    id: 'L17',
    bug: 'the window of unacknowledged appends to a peer never opens again',
    law: 'a quorum makes progress',
    edits: [
      { in: 'Progress.freeInflight', find: 'this.#inflightBytes -= oldest.bytes;', replace: '' },
      { in: 'Progress.freeInflight', find: 'this.#inflight.splice(0, count);', replace: '' },
      {
        in: 'Progress.freeOneInflight',
        find: 'if (oldest !== undefined && this.isPaused())',
        replace: 'if (false && oldest)',
      },
    ],
  },
  {
    id: 'L18',
    bug: 'a replica that is installing a snapshot campaigns with a log that it does not hold',
    law: 'votes go to logs that are on disk',
    edits: [
      { in: 'mayCampaign', find: 'return state.pendingInstall === undefined && !', replace: 'return !' },
    ],
    unitTest: {
      file: 'raft/snapshot.test.ts',
      why: 'a replica that needs a snapshot has a log that nobody votes for: only one that waits for its disk for a whole election, while a majority is behind it, could win',
    },
  },
  {
    id: 'H5',
    bug: 'grants of a stale pre-vote are counted',
    law: 'a node campaigns only after a majority said that it could win in that term',
    world: 'short-reigns',
    edits: [
      {
        in: 'handleVoteResponse',
        find: 'if (message.granted && message.term !== (isPreVote ? state.term + 1 : state.term)) return;',
        replace: '',
      },
    ],
  },
  {
    id: 'H5b',
    bug: 'votes of an earlier candidacy are counted in the next',
    law: 'a leader has the votes of a majority on disk',
    edits: [{ in: 'CoreState.#enterTerm', find: 'this.votes.clear();', replace: '' }],
  },
  {
    id: 'L19',
    bug: 'a leader keeps leading because of the answers of a follower that refuses all its snapshots',
    law: 'a quorum makes progress',
    edits: [{ in: 'tickLeader', find: '&& !isLeftBehind(voter)', replace: '' }],
    unitTest: {
      file: 'raft/check-quorum.test.ts',
      why: 'it takes an unsound leader, a broken path and a replica that was left behind, all at the end: one of 1,000 seeds (1000356)',
    },
  },
  {
    id: 'L20',
    bug: 'snapshots that were cut off on their way are taken for refused',
    law: 'a leader that a quorum answers keeps leading',
    edits: [{ in: 'snapshotDone', find: "fate === 'refused'", replace: 'true' }],
    unitTest: {
      file: 'raft/check-quorum.test.ts',
      why: 'a group whose leader steps down too often still makes progress',
    },
  },
  {
    id: 'L21',
    bug: 'a peer that is slow to take a snapshot is taken for one that refuses it',
    law: 'a leader that a quorum answers keeps leading',
    edits: [
      {
        in: 'OutgoingSnapshots.tick',
        find: "isLast ? 'refused' : 'broken'",
        replace: "isLast ? 'refused' : 'refused'",
      },
    ],
    unitTest: {
      file: 'raft/driver/outgoing-snapshots.test.ts',
      why: 'a group whose leader steps down too often still makes progress',
    },
  },
];
