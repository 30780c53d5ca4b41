/**
 * Moves groups to where they should be: whoever leads a group compares its members with those that are wanted and
 * changes them, one step at a time, until they are the same. Nothing is remembered between two looks, so it does not
 * matter how often the lead changes, or who dies, on the way. What has arrived is reported to the leader of group 0.
 *
 * A group is settled for version v when a configuration with the members of v **and the epoch v** is in effect. It then
 * keeps them while v is the newest: whoever leads it, however little that one has heard, has applied this entry before
 * it changes anything, and a change with an older epoch is refused. So reports may be late, lost or repeated, and come
 * from a leader that does not know yet that it leads no more. The same members under an older epoch prove nothing: they
 * may be on their way to a version in between, or have been there and be on their way back.
 */
import type { MembershipChange } from '../../raft/membership.ts';
import type { MultiRaft } from '../../raft/multi-raft.ts';
import type { GroupConfig, GroupId, NodeId } from '../../raft/types.ts';
import { type ClusterPlacement, META_GROUP, type Members } from './cluster-placement.ts';
import type { MetaGroup } from './meta-group.ts';

export interface GroupMoverInit {
  readonly raft: MultiRaft;
  readonly meta: MetaGroup;
  readonly placement: ClusterPlacement;
  /** The groups this node holds. */
  readonly groups: () => Iterable<GroupId>;
  /** Tells the leader of group 0 which groups have the members that `version` wants. */
  readonly report: (metaLeader: NodeId, version: number, settled: readonly GroupId[]) => void;
}

const LOOK_TICKS = 10;
/** Groups whose members one node changes at a time: each may mean a snapshot to send. */
const MOVING_MAX = 8;

/** The next change on the way from `config` to `wanted`; undefined if there is none to make now. */
export function nextStep(config: GroupConfig, wanted: Members): MembershipChange | undefined {
  if (config.outgoing.length > 0) return undefined;
  const { voters, learners } = config;
  const entering = [...wanted.voters, ...wanted.learners].filter(
    (node) => !voters.includes(node) && !learners.includes(node),
  );
  if (entering.length > 0) return entering.map((node) => ({ kind: 'addLearner', node }));
  // Voters come and go in one step, so that there are never fewer copies than before.
  const steps: MembershipChange = [
    ...wanted.voters
      .filter((node) => learners.includes(node))
      .map((node) => ({ kind: 'promote', node }) as const),
    ...voters
      .filter((node) => !wanted.voters.includes(node))
      .map((node) => ({ kind: wanted.learners.includes(node) ? 'demote' : 'remove', node }) as const),
    ...learners
      .filter((node) => !wanted.voters.includes(node) && !wanted.learners.includes(node))
      .map((node) => ({ kind: 'remove', node }) as const),
  ];
  return steps.length > 0 ? steps : undefined;
}

export class GroupMover {
  readonly #init: GroupMoverInit;
  #ticks = 0;
  /** On the leader of group 0: the groups that have the members of `#version`. */
  readonly #settled = new Set<GroupId>();
  #version = 0;

  constructor(init: GroupMoverInit) {
    this.#init = init;
  }

  tick(): void {
    this.#ticks += 1;
    if (this.#ticks % LOOK_TICKS === 0) this.#look();
  }

  #look(): void {
    const { raft, meta, placement, groups, report } = this.#init;
    const { state } = meta;
    if (state === undefined) {
      if (meta.isLeader) raft.requestProposal(META_GROUP);
      return;
    }
    const isSettled = state.settledVersion === state.version;
    const settled: GroupId[] = [];
    let moving = 0;
    for (const group of groups()) {
      const config = raft.configOf(group);
      if (config === undefined || !raft.leads(group)) continue;
      if (raft.isChanging(group)) {
        moving += 1;
        continue;
      }
      const step = nextStep(config, placement.membersOf(group));
      if (step === undefined) {
        if (config.epoch === state.version) settled.push(group);
        else if (!isSettled) raft.changeMembership(group, [], state.version, () => undefined);
      } else if (moving < MOVING_MAX) {
        moving += 1;
        // Refused, for instance because a learner is still behind: the next look tries again.
        raft.changeMembership(group, step, state.version, () => undefined);
      }
    }
    if (isSettled || settled.length === 0) return;
    if (meta.isLeader) this.reported(state.version, settled);
    else if (meta.leader !== 0) report(meta.leader, state.version, settled);
  }

  /** A node leads these groups and found them settled. */
  reported(version: number, settled: readonly GroupId[]): void {
    const { meta, placement } = this.#init;
    const { state } = meta;
    if (!meta.isLeader || state === undefined || version !== state.version) return;
    if (this.#version !== version) this.#settled.clear();
    this.#version = version;
    for (const group of settled) if (group <= placement.partitionCount) this.#settled.add(group);
    if (this.#settled.size === placement.partitionCount + 1) meta.settled(version);
  }
}
