/**
 * How a leader works: it appends and replicates entries, counts acknowledgements, commits, and steps down when no
 * quorum answers.
 */
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
 * Becomes leader after a won election. It first appends a no-op, because a leader never commits entries of earlier
 * terms by counting copies (Raft paper, 5.4.2 and figure 8), only together with an entry of its own term.
 */
export function takeLeadership(state: CoreState): Leadership {
  const leadership = state.becomeLeader();
  appendNoop(state, leadership);
  broadcastAppend(state, leadership);
  return leadership;
}

/** Appends a no-op. The configuration may not change again until this entry is committed and applied. */
export function appendNoop(state: CoreState, leadership: Leadership): void {
  leadership.pendingConfigIndex = appendEntry(state, leadership, 'noop', EMPTY).index;
}

/**
 * Whether this leader accepts proposals: not while it hands over, and not while it is unfit to stamp entries with
 * its time.
 */
export function acceptsProposals(state: CoreState, leadership: Leadership): boolean {
  return leadership.transferTarget === NO_NODE && state.willingness !== 'unfit';
}

/**
 * Appends a command and sends it to all members. Returns undefined, and appends nothing, if too many bytes are
 * uncommitted or this leader accepts no proposals.
 */
export function propose(state: CoreState, leadership: Leadership, data: Uint8Array): Entry | undefined {
  if (!acceptsProposals(state, leadership)) return undefined;
  const { uncommittedBytes } = leadership;
  if (uncommittedBytes > 0 && uncommittedBytes + data.byteLength > state.options.uncommittedBytesMax)
    return undefined;
  const entry = appendEntry(state, leadership, 'command', data);
  broadcastAppend(state, leadership);
  return entry;
}

/** Appends an entry to the leader's own log, stamped with group time, and sends nothing yet. */
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
  // A leader's timeline starts with the first entry of its term. Later stamps are readings of that timeline.
  if (last.term !== entry.term) state.anchorClockToLog();
  leadership.uncommittedBytes += entryBytes(entry);
  return entry;
}

/** Sends new entries to every peer whose window has room. */
export function broadcastAppend(state: CoreState, { progress }: Leadership): void {
  for (const [peer, each] of progress) if (peer !== state.id) sendAppends(state, peer, each);
}

/** Sends appends until the peer has everything or its window is full. */
function sendAppends(state: CoreState, peer: NodeId, progress: Progress): void {
  while (!progress.isPaused() && progress.next <= state.log.lastIndex) {
    sendAppend(state, peer, progress);
  }
}

/** Sends one append, or a snapshot if the next entry was compacted. The append is empty if there is nothing new. */
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
  assert(
    entries.length === 0 || entries[0]?.index === prev.index + 1,
    'the entries of an append must follow prevIndex',
  );
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
    // A dead peer would keep a stream open. Wait until it answers a heartbeat, as after any probe.
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

/** Counts a tick on a leader: sends heartbeats, ends a hand-over that takes too long, and checks the quorum. */
export function tickLeader(state: CoreState, leadership: Leadership): void {
  leadership.heartbeatElapsedTicks += 1;
  state.electionElapsedTicks += 1;
  leadership.transferElapsedTicks += 1;
  // The successor did not take over in time: go on leading.
  if (leadership.transferElapsedTicks >= state.options.electionTicks) endTransfer(leadership);
  if (state.electionElapsedTicks >= state.options.electionTicks) {
    state.electionElapsedTicks = 0;
    // Check-quorum. A leader steps down if no quorum answers: it is cut off. It also steps down if a quorum answers
    // only together with followers that refuse its snapshots: it commits nothing with these, yet they protect it
    // from other candidates.
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

/**
 * Ends a round of check-quorum and begins the next. Returns the members that answered in it, including this leader.
 */
function heardInRound(state: CoreState, { progress }: Leadership): ReadonlySet<NodeId> {
  const heard = new Set([state.id]);
  for (const [peer, each] of progress)
    if (peer !== state.id && each.nextRound(state.log.lastIndex)) heard.add(peer);
  return heard;
}

/** Sends a heartbeat to every peer. */
export function broadcastHeartbeat(state: CoreState, { progress }: Leadership): void {
  for (const [peer, each] of progress) if (peer !== state.id) sendHeartbeat(state, peer, each);
}

/** Sends a heartbeat to one peer. */
export function sendHeartbeat(state: CoreState, peer: NodeId, progress: Progress): void {
  state.send({
    type: 'heartbeat',
    from: state.id,
    to: peer,
    term: state.term,
    // The peer must not commit entries that it is not known to have.
    commit: Math.min(progress.match, state.log.committed),
    timeMillis: state.clock.nowMillis(),
    readRound: state.readRound,
    match: progress.match,
  });
}

/** A peer answered a heartbeat: it is reachable, and may need entries. */
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
  // Sent even if there is nothing new: the answer to an empty append ends the probing in an idle group.
  if (
    progress.state === 'probe' ||
    (progress.state === 'replicate' && progress.match < state.log.lastIndex)
  ) {
    sendAppend(state, message.from, progress);
  }
}

/** A peer acknowledged or rejected an append. */
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
    'node {} acknowledged {}, past the end of the log',
    message.from,
    message.index,
  );
  const isNew = progress.maybeUpdate(message.index);
  switch (progress.state) {
    case 'probe':
      if (isNew || progress.match === message.index) progress.becomeReplicate();
      break;
    case 'snapshot':
      // Any answer that connects the peer to this log ends the snapshot, whichever leader sent it.
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

/**
 * Hands the leadership over (Raft thesis, 3.10): stop proposing, bring the successor's log up to date, then ask it
 * to campaign.
 */
export function transferLeadership(state: CoreState, leadership: Leadership, to: NodeId): void {
  if (leadership.transferTarget === to) return;
  leadership.transferTarget = to;
  leadership.transferElapsedTicks = 0;
  handOverIfComplete(state, leadership);
}

/** Gives up a hand-over; proposals are accepted again. */
export function endTransfer(leadership: Leadership): void {
  leadership.transferTarget = NO_NODE;
}

/** The other voters that are able and willing to take over, the one with the longest log first. */
export function successors(state: CoreState, leadership: Leadership): NodeId[] {
  return state.config.voters
    .filter((voter) => voter !== state.id && leadership.progress.get(voter)?.mayTakeOver === true)
    .sort((a, b) => leadership.matchOf(b) - leadership.matchOf(a));
}

/** Asks the successor to campaign once its log is complete. */
function handOverIfComplete(state: CoreState, leadership: Leadership): void {
  const to = leadership.transferTarget;
  const progress = leadership.progress.get(to);
  assert(progress !== undefined, 'node {} is a member and must have progress', to);
  if (progress.match < state.log.lastIndex) return;
  state.send({ type: 'timeoutNow', from: state.id, to, term: state.term });
}

/** The leader's own entries reached its disk, so its own acknowledgement counts now. */
export function ownLogIsStable(state: CoreState, leadership: Leadership): void {
  // A leader that was removed leads for a moment without counting itself.
  const own = leadership.progress.get(state.id);
  if (own?.maybeUpdate(state.log.stable) === true) advanceCommit(state, leadership);
}

/**
 * Commits up to the largest index that a quorum has on disk, if the entry there is of the leader's own term (Raft
 * paper, 5.3 and 5.4.2).
 */
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

/** The driver has stopped sending a snapshot. After a success the peer's own answer has usually arrived before. */
export function snapshotDone(leadership: Leadership, peer: NodeId, fate: SnapshotFate): void {
  const progress = leadership.progress.get(peer);
  if (progress === undefined || progress.state !== 'snapshot') return;
  if (fate === 'arrived') progress.becomeProbe();
  else progress.snapshotFailed(fate === 'refused');
  // The next heartbeat answer starts the probe. An append sent now could reach a peer that is still installing.
  progress.probeSent = true;
}

/** The connection to the peer broke and appends may be lost: probe again where the logs agree. */
export function peerUnreachable(leadership: Leadership, peer: NodeId): void {
  const progress = leadership.progress.get(peer);
  if (progress?.state === 'replicate') progress.becomeProbe();
  if (leadership.transferTarget === peer) endTransfer(leadership);
}
