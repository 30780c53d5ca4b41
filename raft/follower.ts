/** What a follower does with a leader's messages: append, learn the commit index, take a snapshot. */
import { assert } from './assert.ts';
import type { CoreState } from './core-state.ts';
import { RolledBackError } from './errors.ts';
import { configOfSnapshot } from './membership.ts';
import { NO_NODE, type Append, type Heartbeat, type InstallSnapshot, type SnapshotMeta } from './types.ts';

/** A message of this term's legitimate leader arrived: trust it for another election timeout. */
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

export function handleAppend(state: CoreState, message: Append): void {
  followLeader(state, message);
  const { log } = state;
  if (message.prevIndex < log.committed) {
    // Late or repeated: what it could tell us is committed, and parts of it may be compacted.
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
 * An acknowledgement left only when its entries and its term were on disk, and no leader of that term takes them back.
 * So whoever is told of one and does not hold it has lost what was synced. See raft/README.md for what this finds.
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

/** Does this replica lack anything that the snapshot holds? */
export function needsSnapshot({ log }: CoreState, meta: SnapshotMeta): boolean {
  return meta.index > log.committed && log.termAt(meta.index) !== meta.term;
}

export function handleInstallSnapshot(state: CoreState, message: InstallSnapshot): void {
  followLeader(state, message);
  const { log } = state;
  const { meta } = message;
  if (!needsSnapshot(state, meta)) {
    // We hold all of it already; at most it tells us that it is committed.
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
