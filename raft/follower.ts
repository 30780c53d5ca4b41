/**
 * How a follower handles a leader's messages: it appends entries, learns the commit index, and installs snapshots.
 */
import { assert } from './assert.ts';
import type { CoreState } from './core-state.ts';
import { RolledBackError } from './errors.ts';
import { configOfSnapshot } from './membership.ts';
import { NO_NODE, type Append, type Heartbeat, type InstallSnapshot, type SnapshotMeta } from './types.ts';

/** The leader of this term sent a message: follow it, and restart the election timer. */
export function followLeader(state: CoreState, message: Append | Heartbeat | InstallSnapshot): void {
  assert(state.role !== 'leader', 'two leaders in term {}: {} and {}', state.term, state.id, message.from);
  if (state.role !== 'follower') state.becomeFollower(message.term, message.from);
  assert(
    state.leader === NO_NODE || state.leader === message.from,
    'two leaders in term {}: {} and {}',
    state.term,
    state.leader,
    message.from,
  );
  state.leader = message.from;
  state.resetElectionTimeout();
}

/**
 * Appends the entries of the message and acknowledges them, or refuses with a hint where the logs may still agree.
 */
export function handleAppend(state: CoreState, message: Append): void {
  followLeader(state, message);
  const { log } = state;
  if (message.prevIndex < log.committed) {
    // A late or repeated message: its entries are committed here already, and some may be compacted.
    accept(state, message, log.committed);
    return;
  }
  const lastBefore = log.last;
  const lastNew = log.maybeAppend(message.prevIndex, message.prevTerm, message.entries);
  if (lastNew === undefined) {
    const hint = log.findConflictByTerm(Math.min(message.prevIndex, log.lastIndex), message.prevTerm);
    state.send({
      type: 'appendResponse',
      from: state.id,
      to: message.from,
      term: state.term,
      rejected: true,
      index: message.prevIndex,
      hintIndex: hint.index,
      hintTerm: hint.term,
    });
    return;
  }
  if (log.last !== lastBefore) state.anchorClockToLog();
  state.observeLeaderTime(message.term, message.timeMillis);
  log.commitTo(Math.min(message.commit, lastNew));
  accept(state, message, lastNew);
}

function accept(state: CoreState, message: Append | InstallSnapshot, index: number): void {
  state.send({
    type: 'appendResponse',
    from: state.id,
    to: message.from,
    term: state.term,
    rejected: false,
    index,
    hintIndex: 0,
    hintTerm: 0,
  });
}

/**
 * A heartbeat carries the index that this node has acknowledged to its sender. An acknowledgement leaves only after
 * its entries are on disk, and no leader of that term takes them back. A node that does not have them has therefore
 * lost synced data.
 *
 * @throws RolledBackError in that case. docs/internals/raft.md lists which losses this finds.
 */
export function checkAcknowledged(state: CoreState, message: Heartbeat): void {
  const { from, term, match } = message;
  const { lastIndex } = state.log;
  if (match === 0 || term < state.term || (term === state.term && match <= lastIndex)) return;
  throw new RolledBackError({
    leader: from,
    term,
    acknowledged: match,
    own: { term: state.term, lastIndex },
  });
}

/** Learns the commit index and the leader's time, and answers. */
export function handleHeartbeat(state: CoreState, message: Heartbeat): void {
  followLeader(state, message);
  state.observeLeaderTime(message.term, message.timeMillis);
  state.log.commitTo(message.commit);
  state.send({
    type: 'heartbeatResponse',
    from: state.id,
    to: message.from,
    term: state.term,
    readRound: message.readRound,
    isReluctant: state.willingness !== 'willing',
  });
}

/** Whether the snapshot contains anything that this replica lacks. */
export function needsSnapshot({ log }: CoreState, meta: SnapshotMeta): boolean {
  return meta.index > log.committed && log.termAt(meta.index) !== meta.term;
}

/** The chunks of a snapshot are on disk and verified: replaces the log in memory, unless this log has all of it. */
export function handleInstallSnapshot(state: CoreState, message: InstallSnapshot): void {
  followLeader(state, message);
  const { log } = state;
  const { meta } = message;
  if (!needsSnapshot(state, meta)) {
    // The log has all of it; the message may still move the commit index.
    log.commitTo(meta.index);
    accept(state, message, log.committed);
    return;
  }
  log.restore(meta);
  state.config = configOfSnapshot(meta);
  state.pendingInstall = message;
  state.anchorClockToLog();
  state.observeLeaderTime(message.term, message.timeMillis);
  accept(state, message, meta.index);
}
