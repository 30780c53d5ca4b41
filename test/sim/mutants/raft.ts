/** Mutants: the log, its commit index, elections and offices. */
import type { Mutant } from './mutant.ts';

export const RAFT: readonly Mutant[] = [
  {
    id: 'M3',
    bug: 'entries of earlier terms are committed by counting',
    edits: [{ in: 'maybeCommit', find: '|| state.log.termAt(index) !== state.term)', replace: ')' }],
  },
  {
    id: 'M4',
    bug: 'a new leader commits no no-op',
    edits: [
      {
        in: 'becomeLeader',
        find: 'state.becomeLeaderRole(); appendNoop(state);',
        replace: 'state.becomeLeaderRole();',
      },
    ],
  },
  {
    id: 'M7',
    bug: 'a late, short append truncates although it matches',
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
    bug: 'granted before the entry is committed',
    edits: [
      {
        in: 'Partition.proposed',
        find: 'this.#inflight.set(entry.index, { term: entry.term, sinceMillis, waiters });',
        replace:
          "for (const waiter of waiters) waiter.done(answerOf({ allowed: true, ruleId: waiter.request.ruleId ?? 'default', limit: 1, windowMillis: 1, remaining: 0, retryAfterMillis: 0, resetMillis: 0, decided: { term: entry.term, index: entry.index, timeMillis: entry.timeMillis } })); return;",
      },
    ],
  },
  {
    id: 'M18',
    bug: 'a leader without a quorum never steps down',
    edits: [
      { in: 'tickLeader', find: 'if (!quorumIsActive(state) ||', replace: 'quorumIsActive(state); if (' },
    ],
  },
  {
    id: 'X1',
    bug: 'votes go to logs that are behind',
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
    bug: 'a heartbeat commits what the peer may not hold',
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
    bug: 'the vote is forgotten within a term',
    edits: [{ in: 'CoreState.#enterTerm', find: 'if (term !== this.term) {', replace: '{' }],
  },
];
