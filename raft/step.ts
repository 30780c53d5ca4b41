/**
 * The entry point for messages: compares terms, once for all kinds (Raft paper, 5.1), and then calls the handler.
 */
import { assert } from './assert.ts';
import type { CoreState } from './core-state.ts';
import { handleTimeoutNow, handleVoteRequest, handleVoteResponse, protectsLeader } from './election.ts';
import { checkAcknowledged, handleAppend, handleHeartbeat, handleInstallSnapshot } from './follower.ts';
import { handleAppendResponse, handleHeartbeatResponse } from './leader.ts';
import { advanceReads } from './read-index.ts';
import { NO_NODE, type Message } from './types.ts';

/**
 * Handles one message for this replica.
 *
 * @throws RolledBackError if the message shows that this node lost data it had acknowledged.
 */
export function step(state: CoreState, message: Message): void {
  assert(message.to === state.id, 'message for node {} reached node {}', message.to, state.id);
  if (message.type === 'heartbeat') checkAcknowledged(state, message);
  if (message.term > state.term) {
    if (!acceptHigherTerm(state, message)) return;
  } else if (message.term < state.term) {
    answerLowerTerm(state, message);
    return;
  }
  dispatch(state, message);
  advanceReads(state);
}

function acceptHigherTerm(state: CoreState, message: Message): boolean {
  switch (message.type) {
    case 'preVote':
      return !protectsLeader(state, message.from);
    case 'vote':
      if (protectsLeader(state, message.from) && !message.isTransfer) return false;
      state.becomeFollower(message.term, NO_NODE);
      return true;
    case 'preVoteResponse':
      // A grant carries the term that was asked about, which nobody has entered yet.
      if (!message.granted) state.becomeFollower(message.term, NO_NODE);
      return true;
    case 'append':
    case 'heartbeat':
    case 'snapshot':
      state.becomeFollower(message.term, message.from);
      return true;
    case 'voteResponse':
    case 'appendResponse':
    case 'heartbeatResponse':
    case 'timeoutNow': {
      const wasLeader = state.role === 'leader';
      state.becomeFollower(message.term, NO_NODE);
      // Perhaps nobody was elected: a replica that came back after a removal is in a newer term than the others.
      // Campaign again at once.
      if (wasLeader) state.electionTimeoutTicks = 1;
      return true;
    }
  }
}

/**
 * Answers the two kinds of outdated senders that would otherwise be stuck: a leader of an old term must learn that
 * it is deposed, and a pre-candidate of an old term that it must catch up first.
 */
function answerLowerTerm(state: CoreState, message: Message): void {
  const { id, term } = state;
  const address = { from: id, to: message.from, term };
  switch (message.type) {
    case 'append':
    case 'heartbeat':
    case 'snapshot':
      state.send({
        type: 'appendResponse',
        ...address,
        rejected: true,
        index: 0,
        hintIndex: 0,
        hintTerm: 0,
      });
      return;
    case 'preVote':
      state.send({ type: 'preVoteResponse', ...address, granted: false });
      return;
    case 'vote':
    case 'voteResponse':
    case 'preVoteResponse':
    case 'appendResponse':
    case 'heartbeatResponse':
    case 'timeoutNow':
      return;
  }
}

function dispatch(state: CoreState, message: Message): void {
  const { leadership } = state;
  switch (message.type) {
    case 'preVote':
    case 'vote':
      handleVoteRequest(state, message);
      return;
    case 'preVoteResponse':
    case 'voteResponse':
      handleVoteResponse(state, message);
      return;
    case 'append':
      handleAppend(state, message);
      return;
    case 'heartbeat':
      handleHeartbeat(state, message);
      return;
    case 'snapshot':
      handleInstallSnapshot(state, message);
      return;
    case 'appendResponse':
      if (leadership !== undefined) handleAppendResponse(state, leadership, message);
      return;
    case 'heartbeatResponse':
      if (leadership !== undefined) handleHeartbeatResponse(state, leadership, message);
      return;
    case 'timeoutNow':
      handleTimeoutNow(state, message);
      return;
  }
}
