/**
 * Moves groups to where they should be. The leader of a group compares its members with the wanted ones and changes
 * them step by step until they are equal. It remembers nothing between two rounds except the offers of nodes, so
 * leaders may change or die on the way. A move that waits for a silent node does not block others. Completed moves are
 * reported to the leader of group 0.
 *
 * A group is settled for version v when a configuration with the members of v **and the epoch v** is in effect. It
 * keeps them while v is the newest version: any later leader, even one that missed all news, has applied this entry
 * before it changes anything, and a change with an older epoch is refused. So reports may be late, lost, repeated, or
 * come from a leader that was deposed and does not know it yet. The same members under an older epoch prove nothing:
 * they may be on the way to a version in between, or on the way back from it.
 */
import type { MembershipChange } from '../../raft/membership.ts';
import type { MultiRaft } from '../../raft/driver/multi-raft.ts';
import { type GroupConfig, type GroupId, NO_NODE, type NodeId } from '../../raft/types.ts';
import { type ClusterPlacement, META_GROUP, type Members } from './cluster-placement.ts';
import type { MetaGroup } from './meta-group.ts';
import type { MetaState } from './cluster-state.ts';
import type { Offers } from './offers.ts';

/** What the mover is created with. */
export interface GroupMoverInit {
  readonly raft: MultiRaft;
  readonly meta: MetaGroup;
  readonly placement: ClusterPlacement;
  readonly offers: Offers;
  readonly isConnected: (node: NodeId) => boolean;
  /** The groups that this node holds. */
  readonly groups: () => Iterable<GroupId>;
  /** Reports to the leader of group 0 which groups have the members of `version`. */
  readonly report: (metaLeader: NodeId, version: number, settled: readonly GroupId[]) => void;
}

const CHECK_TICKS = 10;
/** A member that lacks no more entries than this needs no snapshot. */
const CAUGHT_UP_ENTRIES = 64;
/** The number of groups of one node whose new members may catch up at the same time. Each may need a snapshot. */
const CATCHING_UP_MAX = 8;
/**
 * A new member that answers but makes no progress for so long is stuck, for example on its disk. Other groups go on
 * without it.
 */
const STUCK_TICKS = 3_000;

/** Which nodes may join and leave now. The mover waits for the others. */
export interface Ready {
  mayEnter(node: NodeId): boolean;
  mayLeave(node: NodeId): boolean;
}

/**
 * The next change on the way from `config` to `wanted`. `none`: nothing is left to do. `waits`: nothing can be done
 * until a node may join or leave.
 */
export function nextStep(
  config: GroupConfig,
  wanted: Members,
  ready: Ready,
): MembershipChange | 'none' | 'waits' {
  const { voters, learners } = config;
  if (config.outgoing.length > 0) return 'waits';
  const missing = [...wanted.voters, ...wanted.learners].filter(
    (node) => !voters.includes(node) && !learners.includes(node),
  );
  const entering = missing.filter((node) => ready.mayEnter(node));
  if (entering.length > 0) return entering.map((node) => ({ kind: 'addLearner', node }));
  const isUnwanted = (node: NodeId): boolean =>
    !wanted.voters.includes(node) && !wanted.learners.includes(node);
  const gone = learners
    .filter((node) => isUnwanted(node) && ready.mayLeave(node))
    .map((node) => ({ kind: 'remove', node }) as const);
  // Voters join and leave in one step, so that there are never fewer copies than before. That waits until all new ones
  // have joined.
  const areVotersHere = wanted.voters.every((node) => !missing.includes(node));
  const steps: MembershipChange = [...(areVotersHere ? votersStep(config, wanted) : []), ...gone];
  if (steps.length > 0) return steps;
  // A learner that is not wanted but may not leave yet does no harm.
  return missing.length > 0 ? 'waits' : 'none';
}

function votersStep({ voters, learners }: GroupConfig, wanted: Members): MembershipChange {
  return [
    ...wanted.voters
      .filter((node) => learners.includes(node))
      .map((node) => ({ kind: 'promote', node }) as const),
    ...voters
      .filter((node) => !wanted.voters.includes(node))
      .map((node) => ({ kind: wanted.learners.includes(node) ? 'demote' : 'remove', node }) as const),
  ];
}

/** Moves the groups that this node leads. */
export class GroupMover {
  readonly #init: GroupMoverInit;
  #ticks = 0;
  /** By group: the total progress of its new members that are behind, and since which tick it is the same. */
  readonly #progress = new Map<GroupId, { readonly held: number; readonly tick: number }>();
  /** On the leader of group 0: the groups that are settled for `#version`. */
  readonly #settled = new Set<GroupId>();
  #version = 0;

  constructor(init: GroupMoverInit) {
    this.#init = init;
  }

  tick(): void {
    this.#ticks += 1;
    if (this.#ticks % CHECK_TICKS === 0) this.#check();
  }

  #check(): void {
    const { raft, meta, offers, groups, report } = this.#init;
    const { state } = meta;
    if (state === undefined) {
      if (meta.isLeader) raft.requestProposal(META_GROUP);
      return;
    }
    offers.prune();
    for (const group of this.#progress.keys()) if (!raft.leads(group)) this.#progress.delete(group);
    const led = [...groups()].filter((group) => raft.leads(group));
    let catchingUp = led.filter((group) => this.#isCatchingUp(group)).length;
    const isSettled = state.settledVersion === state.version;
    const settled: GroupId[] = [];
    for (const group of led) {
      const config = raft.configOf(group);
      if (config === undefined || raft.isChanging(group)) continue;
      const ready = this.#readyFor(group, state);
      const step = nextStep(config, this.#wantedOf(group, config, ready), ready);
      if (step === 'waits') continue;
      if (step === 'none') {
        if (config.epoch === state.version) settled.push(group);
        else if (!isSettled) raft.changeMembership(group, [], state.version, () => undefined);
        continue;
      }
      // A new member has to catch up. Other steps are cheap; a refused step (for instance if a learner is still behind)
      // is repeated in the next round.
      const enters = group !== META_GROUP && step.some(({ kind }) => kind === 'addLearner');
      if (enters && catchingUp >= CATCHING_UP_MAX) continue;
      if (enters) catchingUp += 1;
      raft.changeMembership(group, step, state.version, () => undefined);
    }
    if (isSettled || settled.length === 0) return;
    if (meta.isLeader) this.reported(state.version, settled);
    else if (meta.leader !== NO_NODE) report(meta.leader, state.version, settled);
  }

  /**
   * The wanted members of a group. In group 0, leaving nodes stay learners: they must learn of new nodes, because they
   * may lead groups that move there. A leaving node that is not a member and cannot join is not waited for.
   */
  #wantedOf(group: GroupId, { voters, learners }: GroupConfig, ready: Ready): Members {
    const { meta, placement } = this.#init;
    const wanted = placement.membersOf(group);
    if (group !== META_GROUP) return wanted;
    const isLeaving = (node: NodeId): boolean => meta.state?.leaving.some(({ id }) => id === node) === true;
    const isHere = (node: NodeId): boolean => voters.includes(node) || learners.includes(node);
    const isWanted = (node: NodeId): boolean => isHere(node) || !isLeaving(node) || ready.mayEnter(node);
    return { ...wanted, learners: wanted.learners.filter(isWanted) };
  }

  /**
   * Whether new members of the group are receiving entries. A silent member receives nothing, and one that has
   * everything only waits for others.
   */
  #isCatchingUp(group: GroupId): boolean {
    const { raft } = this.#init;
    const learners = group === META_GROUP ? [] : (raft.configOf(group)?.learners ?? []);
    const heard = learners.filter((node) => raft.isReachable(group, node));
    const status = heard.length === 0 ? undefined : raft.status(group);
    if (status === undefined) return false;
    const { match, lastIndex } = status;
    const behind = heard
      .map((node) => match.get(node) ?? 0)
      .filter((held) => held + CAUGHT_UP_ENTRIES < lastIndex);
    return behind.length > 0 && !this.#isStuck(group, behind);
  }

  #isStuck(group: GroupId, behind: readonly number[]): boolean {
    const held = behind.reduce((sum, index) => sum + index, 0);
    const last = this.#progress.get(group);
    if (last?.held === held) return this.#ticks - last.tick >= STUCK_TICKS;
    this.#progress.set(group, { held, tick: this.#ticks });
    return false;
  }

  #readyFor(group: GroupId, state: MetaState): Ready {
    const { raft, offers, isConnected } = this.#init;
    if (group !== META_GROUP) {
      return {
        // See replica-keeper.ts. A node offers itself only after its incarnation was recorded.
        mayEnter: (node) => isConnected(node) && offers.versionOf(group, node) >= state.version,
        mayLeave: () => true,
      };
    }
    const status = raft.status(META_GROUP);
    return {
      mayEnter: (node) => isConnected(node) && isRecorded(state, node),
      // A removed node should learn that all groups have moved: then it knows that it is no longer needed.
      mayLeave: (node) =>
        !raft.isReachable(META_GROUP, node) || (status?.match.get(node) ?? 0) >= (status?.applied ?? 0),
    };
  }

  /** A node that leads these groups reports that they are settled for `version`. */
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

function isRecorded({ nodes, leaving }: MetaState, node: NodeId): boolean {
  return [...nodes, ...leaving].find(({ id }) => id === node)?.incarnation !== undefined;
}
