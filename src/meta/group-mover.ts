/**
 * Moves groups to where they should be: whoever leads a group compares its members with those that are wanted and
 * changes them, one step at a time, until they are the same. Nothing is remembered between two looks but who offered
 * itself, so it does not matter how often the lead changes, or who dies, on the way. A move that waits for a silent node
 * takes no place from others. What has arrived is reported to the leader of group 0.
 *
 * A group is settled for version v when a configuration with the members of v **and the epoch v** is in effect. It then
 * keeps them while v is the newest: whoever leads it, however little that one has heard, has applied this entry before
 * it changes anything, and a change with an older epoch is refused. So reports may be late, lost or repeated, and come
 * from a leader that does not know yet that it leads no more. The same members under an older epoch prove nothing: they
 * may be on their way to a version in between, or have been there and be on their way back.
 */
import type { MembershipChange } from '../../raft/membership.ts';
import type { MultiRaft } from '../../raft/driver/multi-raft.ts';
import { type GroupConfig, type GroupId, NO_NODE, type NodeId } from '../../raft/types.ts';
import { type ClusterPlacement, META_GROUP, type Members } from './cluster-placement.ts';
import type { MetaGroup } from './meta-group.ts';
import type { MetaState } from './cluster-state.ts';
import type { Offers } from './offers.ts';

export interface GroupMoverInit {
  readonly raft: MultiRaft;
  readonly meta: MetaGroup;
  readonly placement: ClusterPlacement;
  readonly offers: Offers;
  readonly isConnected: (node: NodeId) => boolean;
  /** The groups this node holds. */
  readonly groups: () => Iterable<GroupId>;
  /** Tells the leader of group 0 which groups have the members that `version` wants. */
  readonly report: (metaLeader: NodeId, version: number, settled: readonly GroupId[]) => void;
}

const LOOK_TICKS = 10;
/** Whoever lacks no more than this needs no snapshot. */
const CAUGHT_UP_ENTRIES = 64;
/** Groups of one node whose new members catch up at a time: each may mean a snapshot to send. */
const CATCHING_UP_MAX = 8;
/** A new member that answers, and has got nothing for so long, is stuck, on its disk perhaps. Others go on without it. */
const STUCK_TICKS = 3_000;

/** Who may come and go now: the others are waited for. */
export interface Ready {
  mayEnter(node: NodeId): boolean;
  mayLeave(node: NodeId): boolean;
}

/**
 * The next change on the way from `config` to `wanted`. `none`: there is nothing left to do. `waits`: nothing can be done
 * before a node may come or go.
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
  // Voters come and go in one step, so that there are never fewer copies than before: not before all are here.
  const areVotersHere = wanted.voters.every((node) => !missing.includes(node));
  const steps: MembershipChange = [...(areVotersHere ? votersStep(config, wanted) : []), ...gone];
  if (steps.length > 0) return steps;
  // One learner too many, that may not leave yet, does no harm.
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

export class GroupMover {
  readonly #init: GroupMoverInit;
  #ticks = 0;
  /** By group: how far its new members were, those that lack something, and since when they are no further. */
  readonly #progress = new Map<GroupId, { readonly held: number; readonly tick: number }>();
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
      // Whoever enters has to catch up. Other steps cost nothing; refused, for instance because a learner is still
      // behind, they are tried again with the next look.
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
   * Who leaves is to hear from group 0 who comes, for it may lead what moves there. Nobody waits for one that is not
   * here and cannot come.
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

  /** A new member is sent what it lacks. One that is silent is sent nothing, and one that has it all waits for others. */
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
        // See replica-keeper.ts. Nobody offers itself before its incarnation is recorded.
        mayEnter: (node) => isConnected(node) && offers.versionOf(group, node) >= state.version,
        mayLeave: () => true,
      };
    }
    const status = raft.status(META_GROUP);
    return {
      mayEnter: (node) => isConnected(node) && isRecorded(state, node),
      // Who was removed is to hear that all have moved: then it knows that it is needed no more.
      mayLeave: (node) =>
        !raft.isReachable(META_GROUP, node) || (status?.match.get(node) ?? 0) >= (status?.applied ?? 0),
    };
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

function isRecorded({ nodes, leaving }: MetaState, node: NodeId): boolean {
  return [...nodes, ...leaving].find(({ id }) => id === node)?.incarnation !== undefined;
}
