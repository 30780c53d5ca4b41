/** Formats messages, writes and states as one line each, for the transcripts. */
import type { RaftCore } from '../../raft/core.ts';
import type { Ready } from '../../raft/ready.ts';
import { decodeConfig } from '../../raft/membership.ts';
import type { Entry, GroupConfig, Message } from '../../raft/types.ts';

export function statusOf({ id, core }: { readonly id: number; readonly core: RaftCore }): string {
  const { role, term, leader, commit, lastIndex, match } = core.status();
  const known = [...match].map(([peer, index]) => `${peer}:${index}`).join(' ');
  const led = leader === 0 ? 'no leader' : `leader ${leader}`;
  const matches = known === '' ? '' : ` match ${known}`;
  const config = core.config.epoch === 0 ? '' : ` ${describeConfig(core.config)}`;
  return `${id} ${role} term ${term} ${led} commit ${commit} last ${lastIndex}/${core.lastPosition.term}${matches}${config}`;
}

function describeConfig({ epoch, voters, outgoing, learners }: GroupConfig): string {
  const lists = [
    `voters ${voters.join(' ')}`,
    ...(outgoing.length > 0 ? [`outgoing ${outgoing.join(' ')}`] : []),
    ...(learners.length > 0 ? [`learners ${learners.join(' ')}`] : []),
  ];
  return `{placement ${epoch}: ${lists.join(', ')}}`;
}

export function writeOf({ hardState, entries, install }: Ready): string {
  const parts = [`term ${hardState.term} vote ${hardState.vote}`];
  if (install !== undefined) parts.push(`snapshot ${install.meta.index}/${install.meta.term}`);
  if (entries.length > 0) parts.push(`entries ${entries.map(describeEntry).join(' ')}`);
  return parts.join(', ');
}

export function describeEntry(entry: Entry): string {
  if (entry.kind === 'config') {
    const config = decodeConfig(entry.data);
    return `${entry.index}/${entry.term}:${config === undefined ? 'damaged' : describeConfig(config)}`;
  }
  const text = new TextDecoder().decode(entry.data);
  return `${entry.index}/${entry.term}${entry.kind === 'noop' ? ':noop' : `:${text}`}`;
}

/** One message, one line. */
export function describe(m: Message): string {
  const head = `${m.from}->${m.to} ${m.type} term ${m.term}`;
  switch (m.type) {
    case 'preVote':
    case 'vote':
      return `${head} last ${m.lastIndex}/${m.lastTerm}${m.isTransfer ? ' transfer' : ''}`;
    case 'preVoteResponse':
    case 'voteResponse':
      return `${head} ${m.granted ? 'granted' : 'refused'}`;
    case 'append':
      return `${head} after ${m.prevIndex}/${m.prevTerm} [${m.entries.map(describeEntry).join(' ')}] commit ${m.commit}`;
    case 'appendResponse':
      return m.rejected
        ? `${head} rejected ${m.index}, hint ${m.hintIndex}/${m.hintTerm}`
        : `${head} has ${m.index}`;
    case 'heartbeat':
      return `${head} commit ${m.commit}${roundOf(m)}`;
    case 'snapshot':
      return `${head} up to ${m.meta.index}/${m.meta.term}`;
    case 'heartbeatResponse':
      return `${head}${roundOf(m)}`;
    case 'timeoutNow':
      return head;
  }
}

function roundOf({ readRound }: { readonly readRound: number }): string {
  return readRound === 0 ? '' : ` question ${readRound}`;
}
