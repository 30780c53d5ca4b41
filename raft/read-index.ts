/**
 * Linearizable reads without a write (Raft thesis, 6.4). The leader notes its commit index and then checks that it
 * still leads. Each leadership check has its own number, which heartbeats carry and their answers repeat, so an
 * answer to an earlier check proves nothing for a later read (etcd-io/etcd#20418).
 */
import type { CoreState } from './core-state.ts';
import { broadcastHeartbeat } from './leader.ts';
import type { Leadership } from './leadership.ts';
import { jointQuorumIndex } from './quorum.ts';

/** Requests a read index. Returns a ticket that identifies the answer, or undefined if this node does not lead. */
export function requestRead(state: CoreState): number | undefined {
  if (state.leadership === undefined) return undefined;
  state.lastReadTicket += 1;
  state.leadership.reads.push({ ticket: state.lastReadTicket, round: 0, index: 0 });
  advanceReads(state);
  return state.lastReadTicket;
}

/**
 * To be called after a commit or an answer: starts waiting reads, and confirms those that a quorum has answered.
 */
export function advanceReads(state: CoreState): void {
  const { leadership } = state;
  if (leadership === undefined || leadership.reads.length === 0) return;
  startLeadershipCheck(state, leadership);
  const { reads, progress } = leadership;
  const confirmed = jointQuorumIndex(state.config, (voter) =>
    voter === state.id ? state.readRound : (progress.get(voter)?.readRound ?? 0),
  );
  let count = 0;
  for (const { ticket, round, index } of reads) {
    if (round === 0 || round > confirmed) break;
    state.confirmedReads.push({ ticket, index });
    count += 1;
  }
  reads.splice(0, count);
}

/**
 * Sends one leadership check for all new reads. A new leader does not know the commit index before its own no-op is
 * committed, so reads wait for that (etcd-io/etcd#7331).
 */
function startLeadershipCheck(state: CoreState, leadership: Leadership): void {
  const { log } = state;
  const { reads } = leadership;
  if (reads.at(-1)?.round !== 0 || log.termAt(log.committed) !== state.term) return;
  state.readRound += 1;
  for (const read of reads) {
    if (read.round > 0) continue;
    read.round = state.readRound;
    read.index = log.committed;
  }
  broadcastHeartbeat(state, leadership);
}
