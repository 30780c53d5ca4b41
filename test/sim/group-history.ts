/** The knowledge of the checker about one group: its committed log, its leaders, and the contents of each disk. */
import { simpleConfig } from '../../raft/membership.ts';
import type { Entry, GroupConfig, GroupId, NodeId } from '../../raft/types.ts';
import { campaignConfigs, type CommittedConfig, decidersOf, isMajority } from './configs.ts';
import { DiskMirror, digestOf } from './mirror.ts';
import { check } from './story.ts';

export interface Committed {
  readonly entry: Entry;
  readonly digest: number;
  /** Real time at which the leader stamped it; undefined for a no-op, which is not reported. */
  readonly stampedAt: number | undefined;
  /**
   * How much group time may have gained on real time up to here, beyond the fastest allowed rate, under leaders that
   * had not yet found that their clocks were wrong.
   */
  readonly gainedMillis: number;
}

/** The required outcome of an entry on every replica. */
export interface Outcome {
  readonly decisions: number;
  readonly size: number;
  /** The digest of the state, item by item: see `state-digest.ts`. */
  readonly digest: number;
}

export interface Proposal {
  readonly entry: Entry;
  /** The request ids it holds, computed on first use. */
  requestIds: ReadonlySet<string> | undefined;
}

export interface GroupHistory {
  readonly id: GroupId;
  /** The committed configurations, oldest first. The first one is at index 0. */
  readonly configs: CommittedConfig[];
  /** `log[i]` is entry i. An entry is committed once some replica has applied it. */
  readonly log: (Committed | undefined)[];
  committedIndex: number;
  readonly leaderOf: Map<number, NodeId>;
  /** Digests of all entries ever seen, by position. */
  readonly digests: Map<number, number>;
  readonly stampedAt: Map<number, number>;
  readonly disks: Map<NodeId, DiskMirror>;
  /** Per disk, the index up to which it is known to hold the committed entries. */
  readonly durable: Map<NodeId, number>;
  readonly stateHashes: Map<number, string>;
  /** The decisions of entry i on every replica, and the size of the state after it. */
  readonly outcomes: (Outcome | undefined)[];
  /** The smallest lead of group time over real time, at the fastest allowed rate, among committed entries. */
  lead: number;
  /** `leads[i]`: the value of `lead` when entry i was committed. */
  readonly leads: number[];
  /** Proposals of leaders beyond the committed entries, by position. */
  readonly proposals: Map<number, Proposal>;
  /** See `Committed`. */
  gainedMillis: number;
  /** The last stamp among committed entries: its moment in real time, and the term of its leader. */
  stamped: { readonly atMillis: number; readonly term: number } | undefined;
  readonly applied: Map<NodeId, number>;
  readonly voted: Map<string, NodeId>;
  /** By `campaignKey`: the nodes that sent a candidate their vote and had it, or a later term, on disk. */
  readonly votes: Map<string, Set<NodeId>>;
  /** By `campaignKey`: the nodes that granted a pre-vote. */
  readonly preVotes: Map<string, Set<NodeId>>;
  /** By `campaignKey`: the configurations by which a candidate asked for pre-votes. */
  readonly preVoteConfigs: Map<string, readonly GroupConfig[]>;
}

export function newHistory(id: GroupId, founders: readonly NodeId[]): GroupHistory {
  return {
    id,
    configs: [{ index: 0, term: 0, config: simpleConfig(founders) }],
    log: [undefined],
    committedIndex: 0,
    leaderOf: new Map(),
    digests: new Map(),
    stampedAt: new Map(),
    disks: new Map(),
    durable: new Map(),
    stateHashes: new Map(),
    outcomes: [],
    lead: Infinity,
    leads: [],
    proposals: new Map(),
    gainedMillis: 0,
    stamped: undefined,
    applied: new Map(),
    voted: new Map(),
    votes: new Map(),
    preVotes: new Map(),
    preVoteConfigs: new Map(),
  };
}

export function diskOf(group: GroupHistory, node: NodeId): DiskMirror {
  let disk = group.disks.get(node);
  if (disk === undefined) {
    disk = new DiskMirror(`node ${node}, group ${group.id}`);
    group.disks.set(node, disk);
    group.durable.set(node, 0);
  }
  return disk;
}

/** Log Matching: one position, one entry. */
export function entrySeen(group: GroupHistory, entry: Entry, where: string): void {
  const key = positionKey(entry);
  const digest = digestOf(entry);
  const known = group.digests.get(key);
  if (known === undefined) group.digests.set(key, digest);
  else
    check(
      known === digest,
      () => `log matching: ${where} has another entry ${entry.index} of term ${entry.term}`,
    );
}

/** No run has that many terms. */
export function positionKey({ index, term }: Entry): number {
  return index * 65_536 + term;
}

/** By the configuration in effect, or the one before: some replicas may not have applied the last one. */
export function isOnQuorum(group: GroupHistory, holds: (voter: NodeId) => boolean): boolean {
  return decidersOf(group.configs, Infinity).some((config) => isMajority(config, holds));
}

export function holdsCommitted(group: GroupHistory, disk: DiskMirror, index: number): boolean {
  const term = group.log[index]?.entry.term;
  return term !== undefined && index <= disk.lastIndex && disk.holds(index, term);
}

interface Campaign {
  readonly term: number;
  readonly candidate: NodeId;
}

function campaignKey(term: number, candidate: NodeId): string {
  return `${term}:${candidate}`;
}

export function supports(
  votes: Map<string, Set<NodeId>>,
  voter: NodeId,
  { term, candidate }: Campaign,
): void {
  const key = campaignKey(term, candidate);
  const voters = votes.get(key);
  if (voters === undefined) votes.set(key, new Set([voter]));
  else voters.add(voter);
}

/** The nodes that agreed are a majority of both halves of one of the configurations. */
function hasMajority(
  votes: ReadonlyMap<string, ReadonlySet<NodeId>>,
  { term, candidate }: Campaign,
  configs: readonly GroupConfig[],
): boolean {
  const voters = votes.get(campaignKey(term, candidate));
  const saidYes = (voter: NodeId): boolean => voter === candidate || voters?.has(voter) === true;
  return configs.some((config) => isMajority(config, saidYes));
}

/** By a configuration that the candidate may use. */
export function isElected(group: GroupHistory, campaign: Campaign): boolean {
  return hasMajority(group.votes, campaign, configsOf(group, campaign.candidate));
}

/** `candidate` asks for pre-votes in `term`. */
export function asksForPreVotes(group: GroupHistory, term: number, candidate: NodeId): void {
  group.preVoteConfigs.set(campaignKey(term, candidate), configsOf(group, candidate));
}

/**
 * A majority granted pre-votes. Commits that the candidate learns of while its own vote is being written do not matter:
 * it asked by its knowledge at that time.
 */
export function couldWin(group: GroupHistory, campaign: Campaign): boolean {
  const { term, candidate } = campaign;
  const asked = group.preVoteConfigs.get(campaignKey(term, candidate)) ?? [];
  return hasMajority(group.preVotes, campaign, [...configsOf(group, candidate), ...asked]);
}

function configsOf(group: GroupHistory, candidate: NodeId): GroupConfig[] {
  return campaignConfigs(group.configs, diskOf(group, candidate));
}
