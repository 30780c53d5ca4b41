/**
 * Quorum arithmetic for one set of voters, and for the two sets of a joint configuration (Raft paper, section 6).
 * Pure functions.
 */
import { assert } from './assert.ts';
import type { NodeId } from './types.ts';

/** The voters of a group. While `outgoing` is not empty, a decision needs a majority of both sets. */
export interface JointVoters {
  readonly voters: readonly NodeId[];
  readonly outgoing: readonly NodeId[];
}

/** The size of a majority: any two sets of that many voters share a member. `voterCount` is at least 1. */
export function quorumSize(voterCount: number): number {
  assert(voterCount > 0, 'a group needs at least one voter, got {}', voterCount);
  return Math.floor(voterCount / 2) + 1;
}

/** The largest index that a majority has on disk. `matchIndexes` has one index per voter. */
export function quorumIndex(matchIndexes: readonly number[]): number {
  const sorted = [...matchIndexes].sort((a, b) => b - a);
  const index = sorted[quorumSize(sorted.length) - 1];
  assert(index !== undefined, 'a quorum must not be larger than the set of voters');
  return index;
}

/** The largest index that a majority of each set has on disk. */
export function jointQuorumIndex(joint: JointVoters, matchOf: (voter: NodeId) => number): number {
  const incoming = quorumIndex(joint.voters.map(matchOf));
  return joint.outgoing.length === 0
    ? incoming
    : Math.min(incoming, quorumIndex(joint.outgoing.map(matchOf)));
}

/** Whether the voters for which `isMember` returns true are a quorum. */
export function isQuorum(joint: JointVoters, isMember: (voter: NodeId) => boolean): boolean {
  return jointQuorumIndex(joint, (voter) => (isMember(voter) ? 1 : 0)) === 1;
}

/** The state of an election: `pending` means that the missing votes decide. */
export type VoteResult = 'won' | 'lost' | 'pending';

/**
 * Counts the votes of `voters`. A voter that is missing from `votes` has not answered; votes of other nodes are
 * ignored.
 */
export function voteResult(voters: readonly NodeId[], votes: ReadonlyMap<NodeId, boolean>): VoteResult {
  const needed = quorumSize(voters.length);
  let granted = 0;
  let missing = 0;
  for (const voter of voters) {
    const vote = votes.get(voter);
    if (vote === undefined) missing += 1;
    else if (vote) granted += 1;
  }
  if (granted >= needed) return 'won';
  return granted + missing >= needed ? 'pending' : 'lost';
}

/** The result for both sets: won if both are won, lost as soon as one is lost. */
export function jointVoteResult(joint: JointVoters, votes: ReadonlyMap<NodeId, boolean>): VoteResult {
  const incoming = voteResult(joint.voters, votes);
  if (joint.outgoing.length === 0) return incoming;
  const outgoing = voteResult(joint.outgoing, votes);
  if (incoming === outgoing) return incoming;
  return incoming === 'lost' || outgoing === 'lost' ? 'lost' : 'pending';
}
