/** What a leader does: append and replicate entries, count acknowledgements, commit, and step down in time. */
import { assert } from './assert.ts';
import type { CoreState } from './core-state.ts';
import type { Leadership } from './leadership.ts';
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
  type SnapshotFate,
  type SnapshotMeta,
} from './types.ts';

const EMPTY = new Uint8Array(0);

/**
 * Takes office. The no-op of the new term comes first: entries of earlier terms are never committed by counting
 * copies (Raft paper, 5.4.2 and figure 8), only along with an entry of the leader's own term.
 */
export function takeOffice(state: CoreState): Leadership {
  const leadership = state.becomeLeader();
  appendNoop(state, leadership);
  broadcastAppend(state, leadership);
  return leadership;
}

/** No change of the configuration until this entry, with everything before it, is committed and applied. */
export function appendNoop(state: CoreState, leadership: Leadership): void {
  leadership.pendingConfigIndex = appendEntry(state, leadership, 'noop', EMPTY).index;
}

/** Nothing is appended while leadership is being handed over, or by a node that is not fit to stamp it with its time. */
export function acceptsProposals(state: CoreState, leadership: Leadership): boolean {
  return leadership.transferTarget === NO_NODE && state.willingness !== 'unfit';
}

/** Appends a command, or returns undefined: too many bytes are uncommitted already, or nothing is appended now. */
export function propose(state: CoreState, leadership: Leadership, data: Uint8Array): Entry | undefined {
  if (!acceptsProposals(state, leadership)) return undefined;
  const { uncommittedBytes } = leadership;
  if (uncommittedBytes > 0 && uncommittedBytes + data.byteLength > state.options.uncommittedBytesMax)
    return undefined;
  const entry = appendEntry(state, leadership, 'command', data);
  broadcastAppend(state, leadership);
  return entry;
}

export function appendEntry(
  state: CoreState,
  leadership: Leadership,
  kind: EntryKind,
  data: Uint8Array,
): Entry {
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
  leadership.uncommittedBytes += entryBytes(entry);
  return entry;
}

export function broadcastAppend(state: CoreState, { progress }: Leadership): void {
  for (const [peer, each] of progress) if (peer !== state.id) sendAppends(state, peer, each);
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
  if (!progress.heardThisRound) {
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

export function tickLeader(state: CoreState, leadership: Leadership): void {
  leadership.heartbeatElapsedTicks += 1;
  state.electionElapsedTicks += 1;
  leadership.transferElapsedTicks += 1;
  // The successor did not take over in time: go on leading.
  if (leadership.transferElapsedTicks >= state.options.electionTicks) endTransfer(leadership);
  if (state.electionElapsedTicks >= state.options.electionTicks) {
    state.electionElapsedTicks = 0;
    // Check-quorum: a leader that no quorum answers is cut off. One that a quorum answers is in the way if it has no quorum without
    // followers that refuse its snapshots: nothing is committed with these, and they protect it from other candidates.
    const heard = heardInRound(state, leadership);
    const isCutOff = !isQuorum(state.config, (voter) => heard.has(voter));
    const isLeftBehind = (voter: NodeId): boolean => leadership.progress.get(voter)?.isLeftBehind === true;
    const isInTheWay = !isQuorum(state.config, (voter) => heard.has(voter) && !isLeftBehind(voter));
    if (isCutOff || isInTheWay || state.willingness === 'unfit') {
      state.becomeFollower(state.term, NO_NODE);
      if (isInTheWay && !isCutOff) state.letOthersTry();
      return;
    }
  }
  if (leadership.heartbeatElapsedTicks >= state.options.heartbeatTicks) {
    leadership.heartbeatElapsedTicks = 0;
    broadcastHeartbeat(state, leadership);
  }
}

/** The voters and learners that answered in this round of check-quorum, and this leader. The next round begins. */
function heardInRound(state: CoreState, { progress }: Leadership): ReadonlySet<NodeId> {
  const heard = new Set([state.id]);
  for (const [peer, each] of progress)
    if (peer !== state.id && each.nextRound(state.log.lastIndex)) heard.add(peer);
  return heard;
}

export function broadcastHeartbeat(state: CoreState, { progress }: Leadership): void {
  for (const [peer, each] of progress) if (peer !== state.id) sendHeartbeat(state, peer, each);
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
    readRound: state.readRound,
    match: progress.match,
  });
}

export function handleHeartbeatResponse(
  state: CoreState,
  leadership: Leadership,
  message: HeartbeatResponse,
): void {
  const progress = leadership.progress.get(message.from);
  if (progress === undefined) return;
  progress.heard();
  progress.isReluctant = message.isReluctant;
  if (progress.isReluctant && message.from === leadership.transferTarget) endTransfer(leadership);
  progress.readRound = Math.max(progress.readRound, message.readRound);
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

export function handleAppendResponse(
  state: CoreState,
  leadership: Leadership,
  message: AppendResponse,
): void {
  const progress = leadership.progress.get(message.from);
  if (progress === undefined) return;
  progress.heard();
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
    'node {} acknowledged {}, past our log',
    message.from,
    message.index,
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
  if (isNew) advanceCommit(state, leadership);
  sendAppends(state, message.from, progress);
  if (isNew && message.from === leadership.transferTarget) handOverIfComplete(state, leadership);
}

/** Raft thesis, 3.10: stop proposing, bring the successor's log up to date, tell it to campaign. */
export function transferLeadership(state: CoreState, leadership: Leadership, to: NodeId): void {
  if (leadership.transferTarget === to) return;
  leadership.transferTarget = to;
  leadership.transferElapsedTicks = 0;
  handOverIfComplete(state, leadership);
}

export function endTransfer(leadership: Leadership): void {
  leadership.transferTarget = NO_NODE;
}

/** Voters that would take over and could, those with most of the log first. */
export function successors(state: CoreState, leadership: Leadership): NodeId[] {
  return state.config.voters
    .filter((voter) => voter !== state.id && leadership.progress.get(voter)?.mayTakeOver === true)
    .sort((a, b) => leadership.matchOf(b) - leadership.matchOf(a));
}

/** The successor is told as soon as its log is complete. */
function handOverIfComplete(state: CoreState, leadership: Leadership): void {
  const to = leadership.transferTarget;
  const progress = leadership.progress.get(to);
  assert(progress !== undefined, 'node {} is a member without progress', to);
  if (progress.match < state.log.lastIndex) return;
  state.send({ type: 'timeoutNow', from: state.id, to, term: state.term });
}

/** The leader's own entries reached its disk: its acknowledgement counts like anybody's, and not before. */
export function ownLogIsStable(state: CoreState, leadership: Leadership): void {
  // A leader that was removed goes on for a moment without counting itself.
  const own = leadership.progress.get(state.id);
  if (own?.maybeUpdate(state.log.stable) === true) advanceCommit(state, leadership);
}

/** Section 5.3 and 5.4.2: an index is committed once a quorum has it on disk and its term is the leader's own. */
export function advanceCommit(state: CoreState, leadership: Leadership): void {
  const index = jointQuorumIndex(state.config, (voter) => leadership.matchOf(voter));
  if (index <= state.log.committed || state.log.termAt(index) !== state.term) return;
  const before = state.log.committed;
  if (!state.log.commitTo(index)) return;
  for (const entry of state.log.slice(before + 1, index, Number.POSITIVE_INFINITY)) {
    if (entry.term === state.term) leadership.uncommittedBytes -= entryBytes(entry);
  }
  assert(leadership.uncommittedBytes >= 0, 'uncommitted bytes fell to {}', leadership.uncommittedBytes);
}

/** The driver's word on a snapshot stream. After success the peer's own answer has usually come already. */
export function snapshotDone(leadership: Leadership, peer: NodeId, fate: SnapshotFate): void {
  const progress = leadership.progress.get(peer);
  if (progress === undefined || progress.state !== 'snapshot') return;
  if (fate === 'arrived') progress.becomeProbe();
  else progress.snapshotFailed(fate === 'refused');
  // The next heartbeat answer starts the probe; sending now could hit a peer that is still installing.
  progress.probeSent = true;
}

/** A connection with the peer broke, and appends may be lost with it: find out again where the peer is. */
export function peerUnreachable(leadership: Leadership, peer: NodeId): void {
  const progress = leadership.progress.get(peer);
  if (progress?.state === 'replicate') progress.becomeProbe();
  if (leadership.transferTarget === peer) endTransfer(leadership);
}
