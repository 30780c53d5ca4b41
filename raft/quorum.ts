/** Quorum arithmetic of a majority of voters. Pure functions, testable alone. */
import { assert } from './assert.ts';
import type { NodeId } from './types.ts';

/** The smallest number of voters of which any two sets of that size share a member. */
export function quorumSize(voterCount: number): number {
  assert(voterCount > 0, `a group needs at least one voter, got ${voterCount}`);
  return Math.floor(voterCount / 2) + 1;
}

/** The largest index that a quorum has reached, given what each voter is known to have on disk. */
export function quorumIndex(matchIndexes: readonly number[]): number {
  const sorted = [...matchIndexes].sort((a, b) => b - a);
  const index = sorted[quorumSize(sorted.length) - 1];
  assert(index !== undefined, 'a quorum is never larger than the set of voters');
  return index;
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
