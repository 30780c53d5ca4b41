/**
 * Who decides in a group, for a checker that believes no node: the configurations of the committed log, and what a
 * majority of each is. Written down again, independent of the product's arithmetic.
 */
import type { GroupConfig, NodeId } from '../../raft/types.ts';
import type { DiskMirror } from './mirror.ts';

export interface CommittedConfig {
  /** Of its entry; 0 for the one the group began with. */
  readonly index: number;
  readonly term: number;
  readonly config: GroupConfig;
}

/** A majority of the voters and, during a change, of those before. */
export function isMajority(config: GroupConfig, has: (node: NodeId) => boolean): boolean {
  const isMajorityOf = (voters: readonly NodeId[]): boolean =>
    voters.length === 0 || voters.filter(has).length > voters.length / 2;
  return isMajorityOf(config.voters) && isMajorityOf(config.outgoing);
}

/**
 * By which configurations the entry at `index` may have been committed: that of the last `config` entry before it, or
 * the one before that, if its leader counted before it applied the last.
 */
export function decidersOf(configs: readonly CommittedConfig[], index: number): GroupConfig[] {
  return configs
    .filter((known) => known.index < index)
    .slice(-2)
    .map(({ config }) => config);
}

/**
 * By which configurations the replica with this disk may campaign: that of the last committed `config` entry in its
 * log, or, if it does not know that it is committed, the one before (docs/internals/raft.md).
 */
export function campaignConfigs(configs: readonly CommittedConfig[], disk: DiskMirror): GroupConfig[] {
  const known = configs.filter(
    ({ index, term }) => index === 0 || (disk.lastIndex >= index && disk.holds(index, term)),
  );
  const last = known.at(-1);
  return known.slice(last !== undefined && disk.commit >= last.index ? -1 : -2).map(({ config }) => config);
}
