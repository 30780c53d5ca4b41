/**
 * Quorum arithmetic: majorities of voters, and of two sets of voters at once while a group changes them.
 * Pure functions, testable alone.
 */
import { assert } from './assert.ts';
import type { NodeId } from './types.ts';

/** Who decides. While `outgoing` is not empty, nothing is decided without a majority of each set. */
export interface JointVoters {
  readonly voters: readonly NodeId[];
  readonly outgoing: readonly NodeId[];
}

/** The smallest number of voters of which any two sets of that size share a member. */
export function quorumSize(voterCount: number): number {
  assert(voterCount > 0, 'a group needs at least one voter, got {}', voterCount);
  return Math.floor(voterCount / 2) + 1;
}

/** The largest index that a quorum has reached, given what each voter is known to have on disk. */
export function quorumIndex(matchIndexes: readonly number[]): number {
  const sorted = [...matchIndexes].sort((a, b) => b - a);
  const index = sorted[quorumSize(sorted.length) - 1];
  assert(index !== undefined, 'a quorum is never larger than the set of voters');
  return index;
}

/** The same for two sets at once: what a majority of each has reached. */
export function jointQuorumIndex(joint: JointVoters, matchOf: (voter: NodeId) => number): number {
  const incoming = quorumIndex(joint.voters.map(matchOf));
  return joint.outgoing.length === 0
    ? incoming
    : Math.min(incoming, quorumIndex(joint.outgoing.map(matchOf)));
}

/** Do the voters for which `isMember` holds decide? */
export function isQuorum(joint: JointVoters, isMember: (voter: NodeId) => boolean): boolean {
  return jointQuorumIndex(joint, (voter) => (isMember(voter) ? 1 : 0)) === 1;
}

export type VoteResult = 'won' | 'lost' | 'pending';

/** Counts votes by voter; a voter missing from `votes` has not answered. Votes of others do not count. */
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

/** Won if both sets are won, lost as soon as one is. */
export function jointVoteResult(joint: JointVoters, votes: ReadonlyMap<NodeId, boolean>): VoteResult {
  const incoming = voteResult(joint.voters, votes);
  if (joint.outgoing.length === 0) return incoming;
  const outgoing = voteResult(joint.outgoing, votes);
  if (incoming === outgoing) return incoming;
  return incoming === 'lost' || outgoing === 'lost' ? 'lost' : 'pending';
}
