/**
 * Group time must not fall behind either. While there is no fault, and no clock is wrong:
 *
 * - A replica's estimate equals its leader's, except for the delay of the last message it is based on. The delay counts
 *   from the leader's turn (one pass of the event loop) to the follower's: the path, and a write that either waits for.
 * - Between two stamps of a log, and from the first stamp of a leadership to its others, group time passes like real
 *   time. Allowed are the slowest clock, a millisecond of rounding, and that delay once for every leadership that ended
 *   in between: the new leader used the time that it had last heard.
 * - A denied request has therefore used up its limit in real time too, within the rule's window plus what the
 *   leaderships that ended since may have cost.
 *
 * It does not matter how long the cluster was idle, or how it lost a leader: heartbeats, hand-overs and snapshots carry
 * group time, and a process that starts learns it from its leader. Only these are excused:
 *
 * - A process that becomes leader before it heard from any node, because its group had no quorum without it, knows only
 *   the time of its last entry.
 * - A snapshot shows the time at which its sending began. A node that has just installed one waits for a heartbeat.
 */
import type { GroupId, NodeId } from '../../raft/types.ts';
import { groupOfPartition } from '../../src/partition/placement.ts';
import type { Committed } from './group-history.ts';
import type { Settings } from './settings.ts';
import type { SimNode } from './sim-node.ts';
import { StableLeaders } from './stable-leaders.ts';
import { check } from './story.ts';

export interface TimeCheckerInit {
  readonly settings: Settings;
  readonly nodes: () => readonly SimNode[];
  readonly now: () => number;
  readonly after: (delayMillis: number, run: () => void) => void;
}

const CHECK_MILLIS = 250;
/** By then earlier faults have no effect: backlogs are read, leaders found. */
const HEALING_MILLIS = 3_000;
/** When two estimates are compared, every leadership and process is at least this old. */
const STABLE_MILLIS = 2_500;
/** The slowest clocks lose less. */
const SLOWNESS = 300 / 1_000_000;

interface Stamp {
  readonly atMillis: number;
  readonly timeMillis: number;
  readonly term: number;
}

export class TimeChecker {
  readonly #init: TimeCheckerInit;
  #healthySince = Infinity;
  readonly #stamps = new Map<GroupId, Stamp>();
  /** The first stamp without faults under the last leader. */
  readonly #firstStamps = new Map<GroupId, Stamp>();
  /** The term of the last committed entry. */
  readonly #terms = new Map<GroupId, number>();
  /** The number of leaderships that ended without faults. */
  readonly #ended = new Map<GroupId, number>();
  /** Groups led by a process that may not have heard from any node since it started, and when it became leader. */
  readonly #ledUnheard = new Map<GroupId, number>();
  /** When a node last continued from a snapshot. Keys are the group and the node. */
  readonly #installedAt = new Map<string, number>();
  readonly #leaders: StableLeaders;

  constructor(init: TimeCheckerInit) {
    this.#init = init;
    this.#leaders = new StableLeaders(init, STABLE_MILLIS);
  }

  /** All faults have ended, and no more will come. */
  healed(): void {
    this.#healthySince = this.#init.now() + HEALING_MILLIS;
    this.#checkLater();
  }

  get #isHealthy(): boolean {
    const { nodes, now } = this.#init;
    if (this.#healthySince > now()) return false;
    if (nodes().some(({ clock }) => clock.wrongness !== 1)) this.#healthySince = Infinity;
    return this.#healthySince < Infinity;
  }

  /** `node` became leader. The node that handed over may still believe that it leads. */
  led(node: SimNode, group: GroupId): void {
    const { nodes, now } = this.#init;
    const leads = ({ core }: SimNode): boolean => core?.raft.status(group)?.role === 'leader';
    const isHandedOver = nodes().some((other) => other !== node && other.isRunning && leads(other));
    if (!isHandedOver && now() - node.startedAt < STABLE_MILLIS) this.#ledUnheard.set(group, now());
  }

  /** `node` continues from a snapshot. */
  installed(node: NodeId, group: GroupId): void {
    this.#installedAt.set(`${group} ${node}`, this.#init.now());
  }

  /** Much more than any message takes from turn to turn. */
  get #delayMillis(): number {
    const { network, disk } = this.#init.settings;
    const slow = network.slowFraction > 0 ? network.slowMillis : 0;
    return 50 + network.delayMinMillis + 30 * network.delayMeanMillis + slow + 25 * disk.syncMeanMillis;
  }

  /** How far group time may be behind real time, from a stamp at `sinceMillis`; undefined if unknown. */
  lagMax(group: GroupId, sinceMillis: number): number | undefined {
    if (!this.#isHealthy || sinceMillis < Math.max(this.#healthySince, this.#ledUnheard.get(group) ?? 0))
      return undefined;
    const elapsed = this.#init.now() - sinceMillis;
    return (1 + (this.#ended.get(group) ?? 0)) * this.#delayMillis + elapsed * SLOWNESS + 1;
  }

  committed(group: GroupId, { entry, stampedAt }: Committed): void {
    const { term, timeMillis } = entry;
    const before = this.#stamps.get(group);
    const leaderships = before === undefined ? 0 : term - before.term;
    if (this.#isHealthy)
      this.#ended.set(group, (this.#ended.get(group) ?? 0) + term - (this.#terms.get(group) ?? term));
    this.#terms.set(group, term);
    if (stampedAt === undefined) return;
    const stamp = { atMillis: stampedAt, timeMillis, term };
    this.#stamps.set(group, stamp);
    if (before === undefined || !this.#isHealthy || before.atMillis < this.#healthySince) return;
    if (before.atMillis >= (this.#ledUnheard.get(group) ?? 0))
      checkLoss(
        before,
        stamp,
        `before entry ${entry.index} of group ${group}`,
        leaderships * this.#delayMillis,
      );
    const first = this.#firstStamps.get(group);
    if (first?.term === term) checkLoss(first, stamp, `in term ${term} of group ${group}`);
    else this.#firstStamps.set(group, stamp);
  }

  #checkLater(): void {
    this.#init.after(CHECK_MILLIS, () => {
      if (this.#isHealthy) this.#check();
      this.#checkLater();
    });
  }

  #check(): void {
    this.#leaders.each((partition, leader) => this.#compare(partition, leader));
  }

  #compare(partition: number, leader: SimNode): void {
    const group = groupOfPartition(partition);
    const led = timeOf(leader, partition);
    const status = leader.core?.raft.status(group);
    if (led === undefined || status === undefined) return;
    const { voters } = status.config;
    for (const node of this.#init.nodes()) {
      const known = node.core?.raft.status(group);
      const isFollower = node !== leader && voters.includes(node.id) && known?.leader === leader.id;
      if (!isFollower || !node.isRunning || known.term !== status.term) continue;
      // A lag from before it rested is corrected when it continues: see `FollowedRests.wake`.
      if (node.core?.raft.isResting(group) === true) continue;
      const since = Math.max(node.startedAt, this.#installedAt.get(`${group} ${node.id}`) ?? 0);
      if (this.#init.now() - since < STABLE_MILLIS || known.lastIndex < status.applied) continue;
      const behind = led - (timeOf(node, partition) ?? led);
      check(
        behind <= this.#delayMillis,
        () =>
          `group ${group}: node ${node.id} is ${behind} ms behind its leader ${leader.id}, which it hears`,
      );
    }
  }
}

function checkLoss(from: Stamp, to: Stamp, where: string, moreMillis = 0): void {
  const real = to.atMillis - from.atMillis;
  const behind = real - (to.timeMillis - from.timeMillis);
  const max = real * SLOWNESS + 1 + moreMillis;
  check(behind <= max, () => `group time lost ${behind} of ${real} ms ${where}, may lose ${max}`);
}

function timeOf(node: SimNode, partition: number): number | undefined {
  return node.core?.partitions.get(partition)?.clock.nowMillis();
}
