/**
 * The deciding nodes of a group, for a checker that trusts no node: the configurations of the committed log, and their
 * majorities. Written again, without the product's arithmetic.
 */
import type { GroupConfig, NodeId } from '../../raft/types.ts';
import type { DiskMirror } from './mirror.ts';

export interface CommittedConfig {
  /** The index of its entry; 0 for the initial one. */
  readonly index: number;
  readonly term: number;
  readonly config: GroupConfig;
}

/** A majority of the voters and, during a change, of the former voters. */
export function isMajority(config: GroupConfig, has: (node: NodeId) => boolean): boolean {
  const isMajorityOf = (voters: readonly NodeId[]): boolean =>
    voters.length === 0 || voters.filter(has).length > voters.length / 2;
  return isMajorityOf(config.voters) && isMajorityOf(config.outgoing);
}

/**
 * The configurations by which the entry at `index` may have been committed: that of the last `config` entry before it,
 * or the previous one, if its leader counted before it applied the last.
 */
export function decidersOf(configs: readonly CommittedConfig[], index: number): GroupConfig[] {
  return configs
    .filter((known) => known.index < index)
    .slice(-2)
    .map(({ config }) => config);
}

/**
 * The configurations by which the replica with this disk may campaign: that of the last committed `config` entry in its
 * log, or, if it does not know that this is committed, the previous one (docs/internals/raft.md).
 */
export function campaignConfigs(configs: readonly CommittedConfig[], disk: DiskMirror): GroupConfig[] {
  const known = configs.filter(
    ({ index, term }) => index === 0 || (disk.lastIndex >= index && disk.holds(index, term)),
  );
  const last = known.at(-1);
  return known.slice(last !== undefined && disk.commit >= last.index ? -1 : -2).map(({ config }) => config);
}
