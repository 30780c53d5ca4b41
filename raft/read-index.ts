/**
 * Linearizable reads without writing (Raft thesis, 6.4): the leader notes its commit index, then asks whether it still
 * leads. Every question has a number of its own, carried by heartbeats and echoed by their answers, so that an answer
 * to an earlier one proves nothing for a later read (etcd-io/etcd#20418).
 */
import type { CoreState } from './core-state.ts';
import { broadcastHeartbeat } from './leader.ts';
import type { Leadership } from './leadership.ts';
import { jointQuorumIndex } from './quorum.ts';

/** Asks for an index to read at. Returns the ticket to recognise the answer by, or undefined if this node does not lead. */
export function requestRead(state: CoreState): number | undefined {
  if (state.leadership === undefined) return undefined;
  state.lastReadTicket += 1;
  state.leadership.reads.push({ ticket: state.lastReadTicket, round: 0, index: 0 });
  advanceReads(state);
  return state.lastReadTicket;
}

/** Something was committed or answered: starts the reads that waited for it, and confirms those that a quorum did. */
export function advanceReads(state: CoreState): void {
  const { leadership } = state;
  if (leadership === undefined || leadership.reads.length === 0) return;
  startRound(state, leadership);
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
 * One question for all reads that are new. Until an entry of this term is committed the leader cannot know what is,
 * so they wait for the no-op (etcd-io/etcd#7331).
 */
function startRound(state: CoreState, leadership: Leadership): void {
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
