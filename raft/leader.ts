/** What a leader does: append and replicate entries, count acknowledgements, commit, and step down in time. */
import { assert } from './assert.ts';
import type { CoreState } from './core-state.ts';
import { entryBytes } from './log.ts';
import type { Progress } from './progress.ts';
import { isQuorum, jointQuorumIndex } from './quorum.ts';
import {
  NO_NODE,
  type AppendResponse,
  type Entry,
  type EntryKind,
  type HeartbeatResponse,
  type NodeId,
  type SnapshotMeta,
} from './types.ts';

const EMPTY = new Uint8Array(0);

/**
 * Takes office. The no-op of the new term comes first: entries of earlier terms are never committed by counting
 * copies (Raft paper, 5.4.2 and figure 8), only along with an entry of the leader's own term.
 */
export function becomeLeader(state: CoreState): void {
  state.becomeLeaderRole();
  appendNoop(state);
  broadcastAppend(state);
}

/** No change of the configuration until this entry, with everything before it, is committed and applied. */
export function appendNoop(state: CoreState): void {
  state.pendingConfigIndex = appendEntry(state, 'noop', EMPTY).index;
}

/** Nothing is appended while leadership is being handed over, or by a node that is not fit to stamp it with its time. */
export function acceptsProposals(state: CoreState): boolean {
  return state.role === 'leader' && state.transferTarget === NO_NODE && state.willingness !== 'unfit';
}

/** Appends a command, or returns undefined when too many bytes are uncommitted already. */
export function propose(state: CoreState, data: Uint8Array): Entry | undefined {
  assert(state.role === 'leader', 'only a leader proposes');
  if (
    state.uncommittedBytes > 0 &&
    state.uncommittedBytes + data.byteLength > state.options.uncommittedBytesMax
  ) {
    return undefined;
  }
  const entry = appendEntry(state, 'command', data);
  broadcastAppend(state);
  return entry;
}

export function appendEntry(state: CoreState, kind: EntryKind, data: Uint8Array): Entry {
  const last = state.log.last;
  const entry: Entry = {
    index: last.index + 1,
    term: state.term,
    timeMillis: Math.max(state.clock.nowMillis(), last.timeMillis),
    kind,
    data,
  };
  state.log.append([entry]);
  // Its own line starts with the first entry of its term; the stamps after that are only readings of it.
  if (last.term !== entry.term) state.anchorClockToLog();
  state.uncommittedBytes += entryBytes(entry);
  return entry;
}

export function broadcastAppend(state: CoreState): void {
  for (const [peer, progress] of state.progress) if (peer !== state.id) sendAppends(state, peer, progress);
}

function progressOf(state: CoreState, peer: NodeId): Progress {
  const progress = state.progress.get(peer);
  assert(progress !== undefined, `node ${peer} is a member without progress`);
  return progress;
}

/** Sends as many appends as the peer's window takes. */
function sendAppends(state: CoreState, peer: NodeId, progress: Progress): void {
  while (!progress.isPaused() && progress.next <= state.log.lastIndex) {
    sendAppend(state, peer, progress);
  }
}

/** Sends one append, empty if there is nothing new, or a snapshot if what comes next was compacted. */
function sendAppend(state: CoreState, peer: NodeId, progress: Progress): void {
  const { log } = state;
  const prev = log.positionAt(progress.next - 1);
  if (prev === undefined) {
    sendSnapshot(state, peer, progress);
    return;
  }
  const entries =
    progress.next <= log.lastIndex && !progress.isPaused()
      ? log.slice(progress.next, log.lastIndex, state.options.appendBytesMax)
      : [];
  assert(entries.length === 0 || entries[0]?.index === prev.index + 1, 'an append continues after prevIndex');
  let bytes = 0;
  for (const entry of entries) bytes += entryBytes(entry);
  state.send({
    type: 'append',
    from: state.id,
    to: peer,
    term: state.term,
    prevIndex: prev.index,
    prevTerm: prev.term,
    entries,
    commit: log.committed,
    timeMillis: state.clock.nowMillis(),
  });
  progress.sent(entries.length, bytes);
}

function sendSnapshot(state: CoreState, peer: NodeId, progress: Progress): void {
  if (!progress.recentActive) {
    // A dead peer would hold a stream open: wait, as after any probe, until it answers a heartbeat.
    progress.becomeProbe();
    progress.probeSent = true;
    return;
  }
  const { base } = state.log;
  progress.becomeSnapshot(base.index);
  const meta: SnapshotMeta = { ...base, ...state.config, chunkCount: 0, byteLength: 0 };
  state.send({
    type: 'snapshot',
    from: state.id,
    to: peer,
    term: state.term,
    meta,
    timeMillis: state.clock.nowMillis(),
  });
}

export function tickLeader(state: CoreState): void {
  state.heartbeatElapsedTicks += 1;
  state.electionElapsedTicks += 1;
  state.transferElapsedTicks += 1;
  // The successor did not take over in time: go on leading.
  if (state.transferElapsedTicks >= state.options.electionTicks) endTransfer(state);
  if (state.electionElapsedTicks >= state.options.electionTicks) {
    state.electionElapsedTicks = 0;
    if (!quorumIsActive(state) || state.willingness === 'unfit') {
      state.becomeFollower(state.term, NO_NODE);
      return;
    }
  }
  if (state.heartbeatElapsedTicks >= state.options.heartbeatTicks) {
    state.heartbeatElapsedTicks = 0;
    broadcastHeartbeat(state);
  }
}

/** Check-quorum: a leader that a quorum has not answered for an election timeout is cut off and steps down. */
function quorumIsActive(state: CoreState): boolean {
  const isActive = isQuorum(
    state.config,
    (voter) => voter === state.id || state.progress.get(voter)?.recentActive === true,
  );
  for (const [peer, progress] of state.progress)
    if (peer !== state.id) progress.nextRound(state.log.lastIndex);
  return isActive;
}

export function broadcastHeartbeat(state: CoreState): void {
  for (const [peer, progress] of state.progress) if (peer !== state.id) sendHeartbeat(state, peer, progress);
}

export function sendHeartbeat(state: CoreState, peer: NodeId, progress: Progress): void {
  state.send({
    type: 'heartbeat',
    from: state.id,
    to: peer,
    term: state.term,
    // What the peer is not known to hold must not be committed there.
    commit: Math.min(progress.match, state.log.committed),
    timeMillis: state.clock.nowMillis(),
    ...(state.readRound > 0 && { readRound: state.readRound }),
    ...(progress.match > 0 && { match: progress.match }),
  });
}

export function handleHeartbeatResponse(state: CoreState, message: HeartbeatResponse): void {
  const progress = state.progress.get(message.from);
  if (progress === undefined) return;
  progress.recentActive = true;
  progress.isReluctant = message.isReluctant === true;
  if (progress.isReluctant && message.from === state.transferTarget) endTransfer(state);
  progress.readRound = Math.max(progress.readRound, message.readRound ?? 0);
  progress.probeSent = false;
  progress.freeOneInflight();
  // Also with nothing to send: an answer to an empty append ends the probing in a group that is idle.
  if (
    progress.state === 'probe' ||
    (progress.state === 'replicate' && progress.match < state.log.lastIndex)
  ) {
    sendAppend(state, message.from, progress);
  }
}

export function handleAppendResponse(state: CoreState, message: AppendResponse): void {
  const progress = state.progress.get(message.from);
  if (progress === undefined) return;
  progress.recentActive = true;
  if (message.rejected) {
    // Skip the entries of the peer's conflicting term in one step (Raft paper, end of 5.3).
    const hint = state.log.findConflictByTerm(message.hintIndex, message.hintTerm).index;
    if (!progress.maybeDecreaseTo(message.index, hint)) return;
    if (progress.state === 'replicate') progress.becomeProbe();
    sendAppend(state, message.from, progress);
    return;
  }
  assert(
    message.index <= state.log.lastIndex,
    `node ${message.from} acknowledged ${message.index}, past our log`,
  );
  const isNew = progress.maybeUpdate(message.index);
  switch (progress.state) {
    case 'probe':
      if (isNew || progress.match === message.index) progress.becomeReplicate();
      break;
    case 'snapshot':
      // Any answer that connects the peer to our log ends the snapshot, whichever snapshot it came from.
      if (progress.match >= state.log.base.index) progress.becomeReplicate();
      break;
    case 'replicate':
      progress.freeInflight(message.index);
      break;
  }
  if (isNew) maybeCommit(state);
  sendAppends(state, message.from, progress);
  if (isNew && message.from === state.transferTarget) maybeHandOver(state);
}

/** Raft thesis, 3.10: stop proposing, bring the successor's log up to date, tell it to campaign. */
export function transferLeadership(state: CoreState, to: NodeId): void {
  if (state.transferTarget === to) return;
  state.transferTarget = to;
  state.transferElapsedTicks = 0;
  maybeHandOver(state);
}

export function endTransfer(state: CoreState): void {
  state.transferTarget = NO_NODE;
}

/** Voters that would take over and could, those with most of the log first. */
export function successors(state: CoreState): NodeId[] {
  const matchOf = (voter: NodeId): number => state.progress.get(voter)?.match ?? 0;
  return state.config.voters
    .filter((voter) => voter !== state.id && mayTakeOver(state, voter))
    .sort((a, b) => matchOf(b) - matchOf(a));
}

export function mayTakeOver(state: CoreState, peer: NodeId): boolean {
  const progress = state.progress.get(peer);
  return (
    progress !== undefined && progress.isReachable && !progress.isReluctant && progress.state !== 'snapshot'
  );
}

function maybeHandOver(state: CoreState): void {
  const to = state.transferTarget;
  if (progressOf(state, to).match < state.log.lastIndex) return;
  state.send({ type: 'timeoutNow', from: state.id, to, term: state.term });
}

/** The leader's own entries reached its disk: its acknowledgement counts like anybody's, and not before. */
export function ownLogIsStable(state: CoreState): void {
  // A leader that was removed goes on for a moment without counting itself.
  const own = state.progress.get(state.id);
  if (own?.maybeUpdate(state.log.stable) === true) maybeCommit(state);
}

/** Section 5.3 and 5.4.2: an index is committed once a quorum has it on disk and its term is the leader's own. */
export function maybeCommit(state: CoreState): void {
  const index = jointQuorumIndex(state.config, (voter) => state.progress.get(voter)?.match ?? 0);
  if (index <= state.log.committed || state.log.termAt(index) !== state.term) return;
  const before = state.log.committed;
  if (!state.log.commitTo(index)) return;
  for (const entry of state.log.slice(before + 1, index, Number.POSITIVE_INFINITY)) {
    if (entry.term === state.term) state.uncommittedBytes -= entryBytes(entry);
  }
  assert(state.uncommittedBytes >= 0, `uncommitted bytes fell to ${state.uncommittedBytes}`);
}

/** The driver's word on a snapshot stream. After success the peer's own answer has usually come already. */
export function snapshotDone(state: CoreState, peer: NodeId, arrived: boolean): void {
  const progress = state.progress.get(peer);
  if (progress === undefined || progress.state !== 'snapshot') return;
  if (arrived) progress.becomeProbe();
  else progress.snapshotFailed();
  // The next heartbeat answer starts the probe; sending now could hit a peer that is still installing.
  progress.probeSent = true;
}

/** The connection broke: pipelined appends are lost, so find out again where the peer is. */
export function peerUnreachable(state: CoreState, peer: NodeId): void {
  const progress = state.progress.get(peer);
  if (progress?.state === 'replicate') progress.becomeProbe();
  if (state.transferTarget === peer) endTransfer(state);
}
