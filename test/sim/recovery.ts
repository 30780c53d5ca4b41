/**
 * The end of a run. A quorum is healed, all other damage is made permanent, and the quorum must make progress.
 * Sometimes everything is healed after that: then every request must be decided and all replicas must end up equal.
 */
import type { GroupId, NodeId } from '../../raft/types.ts';
import { META_GROUP } from '../../src/meta/cluster-placement.ts';
import { groupOfPartition } from '../../src/partition/placement.ts';
import {
  disagreement,
  hasQuorums,
  haveRules,
  isWhole,
  livingMembers,
  outsiders,
  stateOf,
} from './agreement.ts';
import type { SimNode } from './sim-node.ts';
import { reachMillisOf } from './naive-meters.ts';
import { isRoomy, OutsideLeaders } from './outside-leaders.ts';
import { check } from './story.ts';
import type { World } from './world.ts';

const PROGRESS_MILLIS_MAX = 45_000;
/** How many deadlines progress may take: a client may wait for several answers in turn, for each until its deadline. */
const PROGRESS_DEADLINES_MAX = 10;
/** Users of a rule with callers' timestamps are kept this much longer than its window. */
const EVENT_MEMORY_MILLIS = 60_000;
const PROBE_MILLIS = 250;
/** After this time everything is decided again: elections, hand-overs and reconnects are over. */
const HEALED_MILLIS_MIN = 3_000;
const HEALED_TICKS = 80;
const HEALED_SLOWNESS = 4;
const HEALTHY_MILLIS = 2_000;
const REST_MILLIS = 4_000;
const EQUAL_MILLIS = 500;
const SETTLED_TRIES_MAX = 120;
const EQUAL_TRIES_MAX = 60;
const BACK_CHECK_MILLIS = 500;
const BACK_CHECKS_MAX = 60;

/** The state of a node that is not healed. */
const FATES = ['crashed', 'paused', 'deaf', 'deaf', 'mute', 'as it is', 'ignorant', 'ignorant'] as const;

export class Recovery {
  readonly #world: World;
  #core: readonly SimNode[] = [];
  /** The grants that are still due; `userId` as long as it is not known to have been denied. */
  #dueGrants: { readonly partition: number; readonly node: SimNode; userId?: string | undefined }[] = [];
  readonly #granted = new Set<number>();
  /** Undefined where there is time to ask any leader. */
  #outside: OutsideLeaders | undefined;
  #probes = 0;
  #startedAt = 0;

  constructor(world: World) {
    this.#world = world;
  }

  start(): void {
    const { nodes, random, settings, story, nemesis, operator, placement, raft } = this.#world;
    nemesis.stop();
    operator.stop();
    // A directory that may be damaged is not used any more.
    for (const node of nodes) if (node.isDoubtful && !node.isStranger) node.dismiss();
    this.#startedAt = this.#world.now;
    const alive = random.shuffled(livingMembers(this.#world));
    // The current leaders often stay outside.
    if (random.chance(0.6)) alive.sort((a, b) => leaderships(a) - leaderships(b));
    // While members change, the quorum of one moment may not be one in the next.
    const { isSettled, meta } = this.#world;
    const size = Math.floor((meta?.nodes.length ?? alive.length) / 2) + 1;
    // With one more node than needed, a path between two of them may stay cut. Not where room is short: a replica
    // cannot forget what it does not hear, so its node may stay full.
    const mayCut =
      isSettled && size < alive.length && isRoomy(this.#world.settings) && !this.#world.mayBeFull;
    const spare = mayCut && random.chance(0.5) ? 1 : 0;
    // A group without a quorum there is excluded for the same reason: it forgets nothing.
    const isPart = isSettled && !this.#world.mayBeFull;
    this.#core = isPart ? alive.slice(0, size + spare) : alive;
    story.report(() => `only these are healed: ${this.#core.map(({ id }) => id).join(', ')}`);
    this.#heal(this.#core);
    if (!isRoomy(this.#world.settings) || settings.network.crawlFraction > 0)
      this.#outside = new OutsideLeaders(this.#world, this.#core);
    const apart = spare > 0 ? this.#cutOnePath() : [];
    for (const node of alive) if (!this.#core.includes(node)) this.#abandon(node);
    const coreIds = this.#core.map(({ id }) => id);
    // If a member of the newest version never comes, nodes cannot delete partitions that moved away until it is removed
    // from the list. Where room is short, new users may find none until then.
    const mayStayFull = this.#world.mayBeFull && meta?.nodes.some(({ id }) => !coreIds.includes(id)) === true;
    const isLed = (group: GroupId): boolean => hasQuorums(raft.configOf(group), coreIds, apart);
    // A new partition gets its first rules from group 0.
    const bringsRules = isLed(META_GROUP);
    for (let partition = 0; partition < placement.partitionCount; partition += 1) {
      const mayHaveRules = bringsRules || haveRules(this.#core, partition);
      if (mayStayFull || !mayHaveRules || !isLed(groupOfPartition(partition))) continue;
      for (const node of this.#core) this.#dueGrants.push({ partition, node });
    }
    this.#world.askable = (node) => node.isOpen && this.#core.includes(node);
    // Where room is short, the most active clients take it: the others stop, so that room becomes free.
    this.#world.clients.isActive = !this.#world.mayBeFull && this.#world.settings.queues === undefined;
    this.#probe();
  }

  /** Requests or answers between two healed nodes are lost for good: they must find another path. */
  #cutOnePath(): NodeId[] {
    const { random, network, story } = this.#world;
    const [from, to] = random.shuffled(this.#core);
    if (from === undefined || to === undefined) return [];
    story.fault('oneWayForGood', `(${from.id} > ${to.id})`);
    network.cut(from.id, to.id);
    return [from.id, to.id];
  }

  #heal(some: readonly SimNode[]): void {
    const { network } = this.#world;
    network.makeReliable(some.map(({ id }) => id));
    this.#world.onEnded = (node) => {
      if (some.includes(node)) this.#world.after(100, () => node.start());
    };
    // One full node is enough to refuse new users, and it keeps a copy even if it is not healed.
    for (const node of livingMembers(this.#world)) node.limitState();
    for (const node of some) {
      node.healDisk();
      network.censor.blind(node.id, false);
      node.clock.goWrong(1);
      node.setLowDisk(false);
      node.sendsUnsound = false;
      node.resume();
      node.start();
      for (const other of some) if (other !== node) network.heal(node.id, other.id);
    }
  }

  /** Nodes outside stay broken for good, each in its own way. */
  #abandon(node: SimNode): void {
    const { random, network, story } = this.#world;
    const fate = random.pick(FATES);
    const confidant = random.pick(this.#core);
    story.report(() => `node ${node.id} stays ${fate}`);
    if (fate === 'crashed') node.crash('lost');
    if (fate === 'paused') node.pause();
    for (const other of this.#core) {
      if (fate === 'deaf') {
        network.cut(other.id, node.id);
        network.heal(node.id, other.id);
      }
      if (fate === 'mute') network.cut(node.id, other.id);
      // One of the healed nodes asks it for the leader, and it does not know.
      if (fate === 'ignorant') {
        const change = other === confidant ? 'heal' : 'cut';
        network[change](node.id, other.id);
        network[change](other.id, node.id);
      }
    }
  }

  #probe(): void {
    const { clients, placement, story } = this.#world;
    for (const partition of new Set(this.#dueGrants.map((due) => due.partition)))
      this.#outside?.observe(partition);
    // A leader outside may still serve some of the healed nodes; a node that cannot reach it is excused.
    this.#dueGrants = this.#dueGrants.filter(
      ({ partition, node }) =>
        livingMembers(this.#world).includes(node) &&
        (!this.#granted.has(partition) || this.#isLedInside(partition)) &&
        this.#keptMillis(partition) < this.#progressMillisMax &&
        (this.#world.now - this.#startedAt < this.#progressMillisMax || !this.#isUninformed(node)),
    );
    if (this.#dueGrants.length === 0) {
      story.report(() => `progress after ${(this.#world.now - this.#startedAt).toFixed(0)} ms`);
      this.#progressed();
      return;
    }
    const elapsedMillis = this.#world.now - this.#startedAt;
    const isLate = this.#dueGrants.some(
      ({ partition }) => elapsedMillis - this.#keptMillis(partition) >= this.#progressMillisMax,
    );
    check(!isLate, () => this.#explain());
    for (const due of this.#dueGrants) {
      if (!due.node.isUp) continue;
      // Repeated under one id: with many ids each might count without an answer in time, and fill a small state.
      due.userId ??= this.#userOf(due.partition);
      const { userId } = due;
      clients.attempt(due.node, { userId, requestId: `for ${userId}` }, 2, (answer) => {
        if (answer?.kind !== 'decision') return;
        if (!answer.decision.allowed) {
          due.userId = undefined;
          return;
        }
        this.#granted.add(due.partition);
        this.#dueGrants = this.#dueGrants.filter((other) => other !== due);
      });
    }
    // With many partitions each is asked less often.
    const many = Math.max(1, placement.partitionCount / 8);
    this.#world.after(PROBE_MILLIS * many, () => this.#probe());
  }

  get #progressMillisMax(): number {
    const { timing, tables } = this.#world.settings;
    const longest = Math.max(PROGRESS_MILLIS_MAX, PROGRESS_DEADLINES_MAX * timing.requestDeadlineMillis);
    if (!this.#world.mayBeFull) return longest;
    // The entries that fill a small state must be forgotten first.
    const horizons = tables.map(({ requestIdHorizonMillis }) => requestIdHorizonMillis);
    const windows = tables.flatMap(({ rules }) =>
      rules.map((rule) => reachMillisOf(rule, rule.windowMillis)),
    );
    return longest + Math.max(...horizons, EVENT_MEMORY_MILLIS + Math.max(...windows));
  }

  /**
   * The node has not heard of the new members and trusts only nodes that it knows. It would hear of them from the
   * leader of group 0, which stays outside and out of its reach.
   */
  #isUninformed(node: SimNode): boolean {
    const { meta, network } = this.#world;
    if ((node.core?.meta?.state?.version ?? 0) >= (meta?.version ?? 0)) return false;
    const leaders = livingMembers(this.#world).filter(
      ({ core }) => core?.raft.status(META_GROUP)?.role === 'leader',
    );
    const isServed = (leader: SimNode): boolean =>
      this.#core.includes(leader) || network.isConnected(leader.id, node.id);
    return leaders.length > 0 && !leaders.some(isServed);
  }

  #keptMillis(partition: number): number {
    return this.#outside?.keptMillis(partition) ?? 0;
  }

  #isLedInside(partition: number): boolean {
    const leaders = this.#core.map((node) => node.core?.partitions.get(partition)?.leader ?? 0);
    return leaders.every((leader) => leader === 0 || this.#core.some(({ id }) => id === leader));
  }

  /** A user of this partition who was never there before. */
  #userOf(partition: number): string {
    for (;;) {
      this.#probes += 1;
      const userId = `probe${this.#probes}`;
      if (this.#world.partitionOf(userId) === partition) return userId;
    }
  }

  #progressed(): void {
    const { clients, peekers, random, story } = this.#world;
    clients.isActive = true;
    if (this.#world.isSettled && random.chance(0.4)) {
      clients.checkObserved();
      peekers.checkAnswered();
      this.#world.described?.watch.checkAnswered();
      this.#world.end();
      return;
    }
    story.report(() => 'everything is healed');
    clients.slowness = HEALED_SLOWNESS;
    this.#world.askable = (node) => node.isOpen && livingMembers(this.#world).includes(node);
    this.#untilSettled(SETTLED_TRIES_MAX);
  }

  /** Waits until the current membership change is finished. */
  #untilSettled(tries: number): void {
    // Includes machines that join meanwhile.
    this.#core = livingMembers(this.#world);
    this.#heal([...this.#core, ...outsiders(this.#world)]);
    if (this.#world.meta !== undefined) this.#world.operator.rescue();
    check(tries > 0, () => `the partitions have not moved to where they should be\n${this.#explain()}`);
    const { clients, nemesis, random } = this.#world;
    // If clients ask for more than disks can write, new members never catch up.
    clients.isActive = tries > SETTLED_TRIES_MAX / 2 || this.#world.isSettled;
    if (!this.#world.isSettled) {
      this.#world.after(EQUAL_MILLIS, () => this.#untilSettled(tries - 1));
      return;
    }
    const { network, timing } = this.#world.settings;
    // Slow frames from before the healing are still on their way, and everything behind them.
    const underWayMillis = network.crawlFraction > 0 ? network.crawlMillis : 0;
    const healedMillis = Math.max(HEALED_MILLIS_MIN, HEALED_TICKS * timing.tickMillis);
    this.#world.after(underWayMillis, () => this.#world.checkers.healed());
    // The others must do without that node, and it without them.
    if (random.chance(0.3)) nemesis.breakClock([1.1, 2, 0.5]);
    this.#world.after(healedMillis + underWayMillis, () => {
      if (this.#isQuick()) clients.mustDecideSince = this.#world.now;
      this.#world.after(HEALTHY_MILLIS, () => {
        if (this.#world.random.chance(0.5) && isWhole(this.#world)) this.#restartAll([...this.#core]);
        else this.#rest();
      });
    });
  }

  /** A graceful rolling restart, which clients must not notice. */
  #restartAll(left: readonly SimNode[]): void {
    const [node, ...others] = left;
    if (node === undefined) {
      this.#world.after(HEALTHY_MILLIS, () => this.#rest());
      return;
    }
    this.#world.story.fault('rollingRestart', `(node ${node.id})`);
    const { life } = node;
    node.stop();
    this.#untilBack(node, life, BACK_CHECKS_MAX, () => this.#restartAll(others));
  }

  #untilBack(node: SimNode, life: number, peeks: number, done: () => void): void {
    check(peeks > 0, () => `node ${node.id} was asked to stop, and is not back\n${this.#explain()}`);
    this.#world.after(BACK_CHECK_MILLIS, () => {
      if (node.life !== life && node.core?.isReady === true) this.#world.after(BACK_CHECK_MILLIS, done);
      else this.#untilBack(node, life, peeks - 1, done);
    });
  }

  /** Slow disks or short deadlines refuse a request now and then, even without faults. */
  #isQuick(): boolean {
    const { disk, network, timing } = this.#world.settings;
    const isPrompt = timing.requestDeadlineMillis >= 1_000 && network.slowFraction === 0;
    return isPrompt && disk.syncMeanMillis <= 10 && network.delayMeanMillis <= 5;
  }

  #rest(): void {
    const { clients } = this.#world;
    clients.isActive = false;
    this.#world.after(REST_MILLIS, () => this.#untilEqual(EQUAL_TRIES_MAX));
  }

  /** All replicas have applied everything. A leader may have changed a moment ago, so this may take a few polls. */
  #untilEqual(tries: number): void {
    const behind = disagreement(this.#world, this.#core);
    check(behind === undefined || tries > 0, () => `${behind ?? ''}\n${this.#explain()}`);
    if (behind !== undefined) {
      this.#world.after(EQUAL_MILLIS, () => this.#untilEqual(tries - 1));
      return;
    }
    this.#world.clients.checkObserved();
    this.#world.peekers.checkAnswered();
    this.#world.customers?.checkAnswered();
    this.#world.described?.checkSettled(this.#world.nodes);
    this.#world.end();
  }

  #explain(): string {
    const due = this.#dueGrants.map(({ partition, node }) => `${partition} ${node.id}`);
    const healed = this.#core.map(({ id }) => id);
    return `no grant (partition, asked node): ${due.join(', ')}; healed: ${healed.join(', ')}\n${stateOf(this.#world)}`;
  }
}

function leaderships(node: SimNode): number {
  return node.core?.raft.leaderships ?? 0;
}
