/** Messages between nodes: none may promise more than its sender's disk holds. */
import type { PeerMessage } from '../../raft/driver/peer-message.ts';
import type { Message, NodeId } from '../../raft/types.ts';
import {
  asksForPreVotes,
  couldWin,
  diskOf,
  entrySeen,
  type GroupHistory,
  supports,
} from './group-history.ts';
import type { DiskMirror } from './mirror.ts';
import { check } from './story.ts';

/** A vote, an acknowledgement and a term are on disk before they are sent. */
export function checkPromise(group: GroupHistory, node: NodeId, message: Message): void {
  switch (message.type) {
    case 'vote':
    case 'voteResponse': {
      if (message.type === 'voteResponse' && !message.granted) return;
      const candidate = message.type === 'vote' ? node : message.to;
      const disk = diskOf(group, node);
      const isKept = disk.term > message.term || (disk.term === message.term && disk.vote === candidate);
      check(isKept, () => `${disk.name} sends a vote of term ${message.term} that is not on disk`);
      check(disk.takesPart, () => `${disk.name} was removed and forgot its promises, but votes`);
      const key = `${node}:${message.term}`;
      const known = group.voted.get(key) ?? candidate;
      check(
        known === candidate,
        () => `${disk.name} votes for ${known} and ${candidate} in term ${message.term}`,
      );
      group.voted.set(key, candidate);
      if (message.type === 'voteResponse') supports(group.votes, node, { term: message.term, candidate });
      if (message.type === 'vote' && !message.isTransfer) {
        const campaign = { term: message.term, candidate: node };
        check(
          couldWin(group, campaign),
          () => `${disk.name} campaigns in term ${message.term}, but no majority said that it could win`,
        );
      }
      return;
    }
    case 'appendResponse': {
      const disk = diskOf(group, node);
      check(
        disk.term >= message.term,
        () => `${disk.name} answers in term ${message.term}, which is not on disk`,
      );
      check(
        message.hintTerm <= message.term,
        () => `${disk.name} has entries of term ${message.hintTerm} before term ${message.term} is over`,
      );
      // In a later term the entries may be gone again: such an answer is merely late.
      if (message.rejected || disk.term > message.term) return;
      check(
        disk.lastIndex >= message.index,
        () => `${disk.name} acknowledges ${message.index} but has ${disk.lastIndex} on disk`,
      );
      checkAgrees(disk, diskOf(group, message.to), message);
      return;
    }
    case 'append':
      for (const entry of message.entries) entrySeen(group, entry, `an append of node ${node}`);
      return;
    case 'preVoteResponse':
      if (message.granted) supports(group.preVotes, node, { term: message.term, candidate: message.to });
      return;
    case 'preVote':
      asksForPreVotes(group, message.term, node);
      return;
    case 'heartbeat':
    case 'heartbeatResponse':
    case 'snapshot':
    case 'timeoutNow':
      return;
  }
}

/**
 * An acknowledged entry is the leader's entry. Entries of its own term are the same everywhere; all others were on its
 * disk when it was elected.
 */
function checkAgrees(
  disk: DiskMirror,
  leader: DiskMirror,
  { index, term }: { readonly index: number; readonly term: number },
): void {
  const own = disk.termAt(index);
  if (own === undefined || own === term || leader.term !== term) return;
  check(
    leader.lastIndex >= index && leader.holds(index, own),
    () => `${disk.name} acknowledges ${index} of term ${own}, which ${leader.name} does not have`,
  );
}

/** One line, without the payloads. */
export function reported(sent: PeerMessage): string {
  if (sent.kind === 'chunk') return `group ${sent.group} chunk ${sent.chunk} of snapshot ${sent.meta.index}`;
  if (sent.kind === 'chunkAck') return `group ${sent.group} holds ${sent.held} chunks of ${sent.index}`;
  if (sent.kind === 'beat')
    return `beat of list ${sent.version}: ${sent.groups?.map(({ group }) => group).join(' ') ?? 'known'}`;
  if (sent.kind === 'beatAnswer') return `list ${sent.version} rests, but ${sent.awake.join(' ') || 'none'}`;
  const { from: _from, to: _to, type, ...rest } = sent.message;
  const fields = Object.entries(rest).map(([name, value]) =>
    Array.isArray(value) ? `${name} ${value.length}` : `${name} ${typeof value === 'object' ? '..' : value}`,
  );
  return `group ${sent.group} ${type}: ${fields.join(', ')}`;
}
