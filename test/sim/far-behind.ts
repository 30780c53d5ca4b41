/**
 * Replicas that need a snapshot when they come back, in situations that chance hardly ever produces: a leader that
 * appended many entries and was deposed, and a member that is down while its group changes its configuration.
 */
import type { GroupId, NodeId, SnapshotMeta } from '../../raft/types.ts';
import { bothWays, type Path } from './cuts.ts';
import type { Hand, NemesisWorld } from './nemesis-world.ts';
import type { SimNode } from './sim-node.ts';

/** Cuts these paths, and returns a function that heals them. */
type Cut = (paths: readonly Path[]) => () => void;

/** How often, and how many times, the condition is polled. */
const CHECK_MILLIS = 5;
const CHECKS_MAX = 400;
/** How often clients ask for more meanwhile, so that logs are compacted. */
const STREAM_CHECKS = 200;
const CHANGE_CHECKS = 20;
/**
 * The fraction of a leader's partitions that must be behind before it reconnects: the more, the more snapshots it
 * needs.
 */
const FAR_FRACTION = 0.6;

export class FarBehind {
  readonly #hand: Hand;
  readonly #cut: Cut;
  /** One at a time: two would leave no quorum. */
  #isUnderWay = false;

  constructor(hand: Hand, cut: Cut) {
    this.#hand = hand;
    this.#cut = cut;
  }

  /**
   * Cuts a leader off, so that no node gets its further entries and it hears from none; or so that others get them and
   * it does not learn that. It stays cut off until it is replaced and the others have compacted the entries that it
   * lacks.
   */
  longSuffix(leader: SimNode): void {
    const { world, random } = this.#hand;
    if (this.#isUnderWay) return;
    const led = groupsOf(world).filter((group) => leader.core?.raft.leads(group) === true);
    const others = othersOf(world, leader);
    const isDeaf = random.chance(0.4);
    const paths = bothWays([leader.id], others).filter(([from]) => !isDeaf || from !== leader.id);
    const heal = this.#cut(paths);
    world.stream(leader);
    if (random.chance(0.3)) world.crowd(leader, leader);
    const isFar = (): boolean =>
      led.filter((group) => this.#isDeposedFar(leader, group)).length >= led.length * FAR_FRACTION;
    this.#when(false, isFar, heal);
  }

  /** The log of the group's current leader now begins after everything that `node` knows to be committed. */
  #isDeposedFar(node: SimNode, group: GroupId): boolean {
    const held = node.core?.raft.status(group);
    if (held === undefined) return false;
    return this.#hand.world.nodes.some((other) => {
      const status = other === node || !other.isRunning ? undefined : other.core?.raft.status(group);
      return status?.role === 'leader' && status.term >= held.term && status.logStart > held.commit + 1;
    });
  }

  /**
   * A node hears nothing until one of its groups has a snapshot, taken during a change of its configuration, that the
   * node lacks. Then only this node hears the leader, so that there is no later snapshot.
   */
  lateForChange(late: SimNode): void {
    const { world } = this.#hand;
    if (this.#isUnderWay) return;
    const others = othersOf(world, late);
    const heal = this.#cut(bothWays([late.id], others));
    let leader: SimNode | undefined;
    const hasCome = (): boolean => {
      leader = world.nodes.find((node) => node !== late && node.isRunning && this.#hasJointFor(node, late));
      return leader !== undefined;
    };
    this.#when(true, hasCome, () => {
      heal();
      if (leader === undefined) return;
      const rest = others.filter((id) => id !== leader?.id);
      const free = this.#cut(bothWays([leader.id], rest));
      world.after(world.settings.timing.electionMillis, () => {
        if (this.#hand.isActive) free();
      });
    });
  }

  #hasJointFor(node: SimNode, late: SimNode): boolean {
    const { world } = this.#hand;
    return groupsOf(world).some((group) => {
      if (node.core?.raft.leads(group) !== true) return false;
      const meta = world.snapshotOf(node.id, group);
      const held = late.core?.raft.status(group)?.commit;
      return (
        held !== undefined &&
        meta !== undefined &&
        isJoint(meta) &&
        meta.index > held &&
        hasMember(meta, late.id)
      );
    });
  }

  /**
   * Sends more requests, and membership changes if `isChanging`, until the condition holds or the polls are used up.
   */
  #when(isChanging: boolean, hasCome: () => boolean, then: () => void): void {
    const { world } = this.#hand;
    this.#isUnderWay = true;
    const check = (checks: number): void => {
      if (!this.#hand.isActive) return;
      if (hasCome() || checks === CHECKS_MAX) {
        this.#isUnderWay = false;
        then();
        return;
      }
      if (checks % STREAM_CHECKS === 0) {
        for (const leader of world.leaders()) if (leader.isOpen) world.stream(leader);
      }
      if (isChanging && checks % CHANGE_CHECKS === 0) world.changeNodes();
      world.after(CHECK_MILLIS, () => check(checks + 1));
    };
    world.after(CHECK_MILLIS, () => check(1));
  }
}

function groupsOf({ settings }: NemesisWorld): GroupId[] {
  return Array.from({ length: settings.config.partitions + 1 }, (_, group) => group);
}

function othersOf({ nodes }: NemesisWorld, node: SimNode): NodeId[] {
  return nodes.filter((other) => other !== node).map(({ id }) => id);
}

function isJoint({ outgoing = [] }: SnapshotMeta): boolean {
  return outgoing.length > 0;
}

function hasMember({ voters, outgoing = [], learners = [] }: SnapshotMeta, node: NodeId): boolean {
  return [...voters, ...outgoing, ...learners].includes(node);
}
