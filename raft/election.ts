/**
 * Elections: timeouts, pre-votes and votes. A message that makes a promise waits until the promise is on disk
 * (`waitsForDisk`).
 */
import { assert } from './assert.ts';
import type { CoreState } from './core-state.ts';
import { takeLeadership } from './leader.ts';
import { votersOf } from './membership.ts';
import { jointVoteResult } from './quorum.ts';
import { hasForgotten } from './reconfigure.ts';
import { NO_NODE, type NodeId, type TimeoutNow, type VoteRequest, type VoteResponse } from './types.ts';

/** Counts a tick on a replica that does not lead. Campaigns when the election timeout is over. */
export function tickElection(state: CoreState): void {
  state.electionElapsedTicks += 1;
  if (state.electionElapsedTicks >= state.electionTimeoutTicks && mayCampaign(state))
    campaign(state, 'preVote');
}

/**
 * Whether this node may campaign: it is a voter, fit to lead, and
 *
 * - no snapshot is waiting for the disk, because such a log could still be lost;
 * - no committed `config` entry is unapplied, because this node would ask the wrong voters;
 * - it is not a replica that came back after a removal and lacks what it once acknowledged.
 */
export function mayCampaign(state: CoreState): boolean {
  if (state.role === 'leader' || !state.isVoter() || state.willingness === 'unfit') return false;
  if (hasForgotten(state)) return false;
  return state.pendingInstall === undefined && !state.log.hasUnappliedConfig;
}

/**
 * Asks all voters for a pre-vote or a vote. A pre-vote changes no state (Raft thesis, 9.6). Only a node that could
 * win goes on to raise the term, so a node that returns from a partition cannot depose a working leader.
 *
 * @param isTransfer the leader itself asked this node to take over.
 */
export function campaign(state: CoreState, type: VoteRequest['type'], isTransfer = false): void {
  assert(mayCampaign(state), 'node {} may not campaign now', state.id);
  if (type === 'preVote') state.becomePreCandidate();
  else state.becomeCandidate();
  const term = type === 'preVote' ? state.term + 1 : state.term;
  const { index, term: lastTerm } = state.log.last;
  for (const voter of votersOf(state.config)) {
    if (voter === state.id) continue;
    state.send({ type, from: state.id, to: voter, term, lastIndex: index, lastTerm, isTransfer });
  }
  if (type === 'preVote') {
    handleVoteResponse(state, {
      type: 'preVoteResponse',
      from: state.id,
      to: state.id,
      term,
      granted: true,
    });
  } else {
    // This node's own vote waits for the disk like any other: `advance` counts it.
    state.send({ type: 'voteResponse', from: state.id, to: state.id, term, granted: true });
  }
}

/**
 * The leader hands over, so it vouches that this log is complete: campaign at once, without a pre-vote. A node that
 * refuses says so at once, because the leader accepts no proposals until it knows.
 */
export function handleTimeoutNow(state: CoreState, { from }: TimeoutNow): void {
  if (mayCampaign(state) && state.willingness === 'willing') campaign(state, 'vote', true);
  else
    state.send({
      type: 'heartbeatResponse',
      from: state.id,
      to: from,
      term: state.term,
      readRound: 0,
      isReluctant: true,
    });
}

/**
 * Whether this node heard from its leader within the minimum election timeout. Then it helps no other candidate to
 * depose it.
 */
export function protectsLeader(state: CoreState, candidate: NodeId): boolean {
  const isLed = state.leader !== NO_NODE && state.electionElapsedTicks < state.options.electionTicks;
  return isLed && state.leader !== candidate;
}

/**
 * Answers a request for a vote or a pre-vote. A node answers even if it does not believe that it or the candidate
 * is a voter: the candidate may know a newer configuration.
 */
export function handleVoteRequest(state: CoreState, message: VoteRequest): void {
  const mayVote =
    state.vote === message.from ||
    (state.vote === NO_NODE && state.leader === NO_NODE) ||
    (message.type === 'preVote' && message.term > state.term);
  const granted =
    mayVote && !hasForgotten(state) && state.log.isUpToDate(message.lastIndex, message.lastTerm);
  if (message.type === 'vote') {
    assert(
      message.term === state.term,
      "a vote must be cast in the voter's term {}, not {}",
      state.term,
      message.term,
    );
    if (granted) {
      assert(
        state.vote === NO_NODE || state.vote === message.from,
        'node {} voted for {} in term {} and may not vote for {}',
        state.id,
        state.vote,
        state.term,
        message.from,
      );
      state.vote = message.from;
      state.electionElapsedTicks = 0;
    }
  }
  const { log } = state;
  const committed = { index: log.committed, term: log.termAt(log.committed) ?? 0 };
  state.send({
    type: message.type === 'preVote' ? 'preVoteResponse' : 'voteResponse',
    from: state.id,
    to: message.from,
    // A refusal carries this node's term, which the candidate may not know.
    term: granted ? message.term : state.term,
    granted,
    ...(!granted && committed.index > 0 && { committed }),
  });
}

/**
 * A voter named a committed position. If this log has the same term at that index, both logs are equal up to it
 * (Log Matching), so all of that is committed here too.
 */
function learnCommit(state: CoreState, committed: { readonly index: number; readonly term: number }): void {
  const { log } = state;
  if (state.role === 'leader' || log.termAt(committed.index) !== committed.term) return;
  log.commitTo(committed.index);
  // The votes were requested under a configuration that is being replaced.
  if (log.hasUnappliedConfig && state.role !== 'follower') state.becomeFollower(state.term, NO_NODE);
}

/** Counts an answer for the current campaign and ignores answers to earlier ones. */
export function handleVoteResponse(state: CoreState, message: VoteResponse): void {
  const isPreVote = message.type === 'preVoteResponse';
  if (message.committed !== undefined) learnCommit(state, message.committed);
  if (state.role !== (isPreVote ? 'preCandidate' : 'candidate')) return;
  if (message.granted && message.term !== (isPreVote ? state.term + 1 : state.term)) return;
  if (!state.votes.has(message.from)) state.votes.set(message.from, message.granted);
  switch (jointVoteResult(state.config, state.votes)) {
    case 'won':
      if (isPreVote) campaign(state, 'vote');
      else takeLeadership(state);
      return;
    case 'lost':
      state.becomeFollower(state.term, NO_NODE);
      return;
    case 'pending':
      return;
  }
}
