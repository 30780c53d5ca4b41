/** Elections: timeouts, pre-vote, votes. Nothing here is a promise until it is on disk (see `waitsForDisk`). */
import { assert } from './assert.ts';
import type { CoreState } from './core-state.ts';
import { takeOffice } from './leader.ts';
import { votersOf } from './membership.ts';
import { jointVoteResult } from './quorum.ts';
import { hasForgotten } from './reconfigure.ts';
import { NO_NODE, type NodeId, type TimeoutNow, type VoteRequest, type VoteResponse } from './types.ts';

export function tickElection(state: CoreState): void {
  state.electionElapsedTicks += 1;
  if (state.electionElapsedTicks >= state.electionTimeoutTicks && mayCampaign(state))
    campaign(state, 'preVote');
}

/**
 * Only voters campaign, and only those that are fit to lead. A snapshot that is not on disk yet is a log this node cannot
 * vouch for. And while a committed change of the configuration is not applied, this node would ask the wrong voters.
 */
export function mayCampaign(state: CoreState): boolean {
  if (state.role === 'leader' || !state.isVoter() || state.willingness === 'unfit') return false;
  if (hasForgotten(state)) return false;
  return state.pendingInstall === undefined && !state.log.hasUnappliedConfig;
}

/**
 * Asks all voters. A pre-vote (Raft thesis, 9.6) changes nothing anywhere; only a node that could win goes on to
 * raise the term, so that a node returning from a partition cannot depose a working leader.
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
    // The own vote waits for the disk like any other: it comes back through `advance`.
    state.send({ type: 'voteResponse', from: state.id, to: state.id, term, granted: true });
  }
}

/**
 * The leader hands over: campaign at once, without a pre-vote, for it vouches that this log is complete. Who does not
 * says so: until it knows, the leader proposes nothing.
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

/** A node that heard from its leader within the minimum election timeout helps nobody else to depose it. */
export function protectsLeader(state: CoreState, candidate: NodeId): boolean {
  const isLed = state.leader !== NO_NODE && state.electionElapsedTicks < state.options.electionTicks;
  return isLed && state.leader !== candidate;
}

/**
 * Answers whoever asks, and whatever this node believes itself to be: a candidate may know of a configuration that
 * has not reached this node yet, in which it is a voter.
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
      "a vote is cast in the voter's term {}, not {}",
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
    // A refusal carries our own term: it may be news to the candidate.
    term: granted ? message.term : state.term,
    granted,
    ...(!granted && committed.index > 0 && { committed }),
  });
}

/** Same term at the same index, same log up to there (Log Matching): so all of it is committed. */
function learnCommit(state: CoreState, committed: { readonly index: number; readonly term: number }): void {
  const { log } = state;
  if (state.role === 'leader' || log.termAt(committed.index) !== committed.term) return;
  log.commitTo(committed.index);
  // The votes were asked for under a configuration that is no longer the latest.
  if (log.hasUnappliedConfig && state.role !== 'follower') state.becomeFollower(state.term, NO_NODE);
}

/** Counts a vote for the campaign this node is running; answers to earlier ones do not count. */
export function handleVoteResponse(state: CoreState, message: VoteResponse): void {
  const isPreVote = message.type === 'preVoteResponse';
  if (message.committed !== undefined) learnCommit(state, message.committed);
  if (state.role !== (isPreVote ? 'preCandidate' : 'candidate')) return;
  if (message.granted && message.term !== (isPreVote ? state.term + 1 : state.term)) return;
  if (!state.votes.has(message.from)) state.votes.set(message.from, message.granted);
  switch (jointVoteResult(state.config, state.votes)) {
    case 'won':
      if (isPreVote) campaign(state, 'vote');
      else takeOffice(state);
      return;
    case 'lost':
      state.becomeFollower(state.term, NO_NODE);
      return;
    case 'pending':
      return;
  }
}
