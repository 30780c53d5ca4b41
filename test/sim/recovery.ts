/**
 * The end of a run. A quorum is healed, all other damage is made permanent, and the quorum must get on. Sometimes everything
 * is healed after that, and then every request must be decided and all replicas must end up equal.
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
/** Whoever waits for one answer until its deadline waits for several. */
const PROGRESS_DEADLINES_MAX = 10;
/** Users of a rule whose callers tell the time are kept for so much longer than its window. */
const EVENT_MEMORY_MILLIS = 60_000;
const PROBE_MILLIS = 250;
/** Then everything is decided again: there were elections, leaders were handed over, and connections dialled. */
const HEALED_MILLIS_MIN = 3_000;
const HEALED_TICKS = 80;
const HEALED_SLOWNESS = 4;
const HEALTHY_MILLIS = 2_000;
const REST_MILLIS = 4_000;
const EQUAL_MILLIS = 500;
const SETTLED_TRIES_MAX = 120;
const EQUAL_TRIES_MAX = 60;
const BACK_LOOK_MILLIS = 500;
const BACK_LOOKS_MAX = 60;

/** What becomes of a node that is not healed. */
const FATES = ['crashed', 'paused', 'deaf', 'deaf', 'mute', 'as it is', 'ignorant', 'ignorant'] as const;

export class Recovery {
  readonly #world: World;
  #core: readonly SimNode[] = [];
  /** Who has to grant something yet; `userId` as long as it is not known to have been denied. */
  #owing: { readonly partition: number; readonly node: SimNode; userId?: string | undefined }[] = [];
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
    // What may or may not be damaged is not relied on any more.
    for (const node of nodes) if (node.isDoubtful && !node.isStranger) node.dismiss();
    this.#startedAt = this.#world.now;
    const alive = random.shuffled(livingMembers(this.#world));
    // Often those who lead stay outside.
    if (random.chance(0.6)) alive.sort((a, b) => leaderships(a) - leaderships(b));
    // While members change, a quorum of the one moment may be none of the next.
    const { isSettled, meta } = this.#world;
    const size = Math.floor((meta?.nodes.length ?? alive.length) / 2) + 1;
    // With one more than needed, a path between two of them may stay cut. Not where room is short: what a replica cannot
    // hear it cannot forget, and its node may be full for good.
    const mayCut =
      isSettled && size < alive.length && isRoomy(this.#world.settings) && !this.#world.mayBeFull;
    const spare = mayCut && random.chance(0.5) ? 1 : 0;
    // Nor may a group stay without a quorum there: it forgets nothing either.
    const isPart = isSettled && !this.#world.mayBeFull;
    this.#core = isPart ? alive.slice(0, size + spare) : alive;
    story.tell(() => `only these are healed: ${this.#core.map(({ id }) => id).join(', ')}`);
    this.#heal(this.#core);
    if (!isRoomy(this.#world.settings) || settings.network.crawlShare > 0)
      this.#outside = new OutsideLeaders(this.#world, this.#core);
    const apart = spare > 0 ? this.#cutOnePath() : [];
    for (const node of alive) if (!this.#core.includes(node)) this.#abandon(node);
    const coreIds = this.#core.map(({ id }) => id);
    // Where a member of the newest version will never come, nothing that moved away is deleted before it is taken out of
    // the list again; where room is short, nobody new may find any until then.
    const mayStayFull = this.#world.mayBeFull && meta?.nodes.some(({ id }) => !coreIds.includes(id)) === true;
    const isLed = (group: GroupId): boolean => hasQuorums(raft.configOf(group), coreIds, apart);
    // A new partition has its first rules from group 0.
    const bringsRules = isLed(META_GROUP);
    for (let partition = 0; partition < placement.partitionCount; partition += 1) {
      const mayHaveRules = bringsRules || haveRules(this.#core, partition);
      if (mayStayFull || !mayHaveRules || !isLed(groupOfPartition(partition))) continue;
      for (const node of this.#core) this.#owing.push({ partition, node });
    }
    this.#world.askable = (node) => node.isOpen && this.#core.includes(node);
    // Where room is short, whoever asks most gets it: others step back, and it comes back by itself.
    this.#world.clients.isActive = !this.#world.mayBeFull && this.#world.settings.queues === undefined;
    this.#probe();
  }

  /** Requests or answers between two healed nodes go astray for good: they must find a way around. */
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
    // One without room is enough to refuse what is new, and it keeps a copy also if it is not healed.
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

  /** What is outside stays broken for good, each node in its own way. */
  #abandon(node: SimNode): void {
    const { random, network, story } = this.#world;
    const fate = random.pick(FATES);
    const confidant = random.pick(this.#core);
    story.tell(() => `node ${node.id} stays ${fate}`);
    if (fate === 'crashed') node.crash('lost');
    if (fate === 'paused') node.pause();
    for (const other of this.#core) {
      if (fate === 'deaf') {
        network.cut(other.id, node.id);
        network.heal(node.id, other.id);
      }
      if (fate === 'mute') network.cut(node.id, other.id);
      // One of the healed asks it who leads, and it does not know.
      if (fate === 'ignorant') {
        const change = other === confidant ? 'heal' : 'cut';
        network[change](node.id, other.id);
        network[change](other.id, node.id);
      }
    }
  }

  #probe(): void {
    const { clients, placement, story } = this.#world;
    for (const partition of new Set(this.#owing.map((owed) => owed.partition)))
      this.#outside?.look(partition);
    // A leader outside may still serve some of the healed nodes; who cannot reach it can do nothing about it.
    this.#owing = this.#owing.filter(
      ({ partition, node }) =>
        livingMembers(this.#world).includes(node) &&
        (!this.#granted.has(partition) || this.#isLedInside(partition)) &&
        this.#keptMillis(partition) < this.#progressMillisMax &&
        (this.#world.now - this.#startedAt < this.#progressMillisMax || !this.#isUninformed(node)),
    );
    if (this.#owing.length === 0) {
      story.tell(() => `progress after ${(this.#world.now - this.#startedAt).toFixed(0)} ms`);
      this.#progressed();
      return;
    }
    const elapsedMillis = this.#world.now - this.#startedAt;
    const isLate = this.#owing.some(
      ({ partition }) => elapsedMillis - this.#keptMillis(partition) >= this.#progressMillisMax,
    );
    check(!isLate, () => this.#explain());
    for (const owed of this.#owing) {
      if (!owed.node.isUp) continue;
      // Asked again and again under one id: each of many might count without an answer in time, and fill a small state.
      owed.userId ??= this.#userOf(owed.partition);
      const { userId } = owed;
      clients.attempt(owed.node, { userId, requestId: `for ${userId}` }, 2, (answer) => {
        if (answer?.kind !== 'decision') return;
        if (!answer.decision.allowed) {
          owed.userId = undefined;
          return;
        }
        this.#granted.add(owed.partition);
        this.#owing = this.#owing.filter((other) => other !== owed);
      });
    }
    // Of many partitions each is asked less often.
    const many = Math.max(1, placement.partitionCount / 8);
    this.#world.after(PROBE_MILLIS * many, () => this.#probe());
  }

  get #progressMillisMax(): number {
    const { timing, tables } = this.#world.settings;
    const longest = Math.max(PROGRESS_MILLIS_MAX, PROGRESS_DEADLINES_MAX * timing.requestDeadlineMillis);
    if (!this.#world.mayBeFull) return longest;
    // What fills a small state has to be forgotten first.
    const horizons = tables.map(({ requestIdHorizonMillis }) => requestIdHorizonMillis);
    const windows = tables.flatMap(({ rules }) =>
      rules.map((rule) => reachMillisOf(rule, rule.windowMillis)),
    );
    return longest + Math.max(...horizons, EVENT_MEMORY_MILLIS + Math.max(...windows));
  }

  /**
   * It has not heard of those who joined, and trusts only whom it knows: it hears of them from the leader of group 0,
   * which stays outside and out of its reach.
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
    const { clients, lookers, random, story } = this.#world;
    clients.isActive = true;
    if (this.#world.isSettled && random.chance(0.4)) {
      clients.checkObserved();
      lookers.checkAnswered();
      this.#world.described?.watch.checkAnswered();
      this.#world.end();
      return;
    }
    story.tell(() => 'everything is healed');
    clients.slowness = HEALED_SLOWNESS;
    this.#world.askable = (node) => node.isOpen && livingMembers(this.#world).includes(node);
    this.#untilSettled(SETTLED_TRIES_MAX);
  }

  /** Whatever change of the nodes was under way, it is finished. */
  #untilSettled(tries: number): void {
    // Machines that join meanwhile included.
    this.#core = livingMembers(this.#world);
    this.#heal([...this.#core, ...outsiders(this.#world)]);
    if (this.#world.meta !== undefined) this.#world.operator.rescue();
    check(tries > 0, () => `the partitions have not moved to where they should be\n${this.#explain()}`);
    const { clients, nemesis, random } = this.#world;
    // Where more is asked than disks can write, new members never have it all.
    clients.isActive = tries > SETTLED_TRIES_MAX / 2 || this.#world.isSettled;
    if (!this.#world.isSettled) {
      this.#world.after(EQUAL_MILLIS, () => this.#untilSettled(tries - 1));
      return;
    }
    const { network, timing } = this.#world.settings;
    // What crawled when it was healed is still under way, and everything behind it.
    const underWayMillis = network.crawlShare > 0 ? network.crawlMillis : 0;
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

  /** A rolling restart, gracefully: nobody notices. */
  #restartAll(left: readonly SimNode[]): void {
    const [node, ...others] = left;
    if (node === undefined) {
      this.#world.after(HEALTHY_MILLIS, () => this.#rest());
      return;
    }
    this.#world.story.fault('rollingRestart', `(node ${node.id})`);
    const { life } = node;
    node.stop();
    this.#untilBack(node, life, BACK_LOOKS_MAX, () => this.#restartAll(others));
  }

  #untilBack(node: SimNode, life: number, looks: number, done: () => void): void {
    check(looks > 0, () => `node ${node.id} was asked to stop, and is not back\n${this.#explain()}`);
    this.#world.after(BACK_LOOK_MILLIS, () => {
      if (node.life !== life && node.core?.isReady === true) this.#world.after(BACK_LOOK_MILLIS, done);
      else this.#untilBack(node, life, looks - 1, done);
    });
  }

  /** Slow disks or short deadlines refuse a request now and then, also in health. */
  #isQuick(): boolean {
    const { disk, network, timing } = this.#world.settings;
    const isPrompt = timing.requestDeadlineMillis >= 1_000 && network.slowShare === 0;
    return isPrompt && disk.syncMeanMillis <= 10 && network.delayMeanMillis <= 5;
  }

  #rest(): void {
    const { clients } = this.#world;
    clients.isActive = false;
    this.#world.after(REST_MILLIS, () => this.#untilEqual(EQUAL_TRIES_MAX));
  }

  /** Everybody has applied everything. A leader may have changed a moment ago, so this may take a few looks. */
  #untilEqual(tries: number): void {
    const behind = disagreement(this.#world, this.#core);
    check(behind === undefined || tries > 0, () => `${behind ?? ''}\n${this.#explain()}`);
    if (behind !== undefined) {
      this.#world.after(EQUAL_MILLIS, () => this.#untilEqual(tries - 1));
      return;
    }
    this.#world.clients.checkObserved();
    this.#world.lookers.checkAnswered();
    this.#world.customers?.checkAnswered();
    this.#world.described?.checkSettled(this.#world.nodes);
    this.#world.end();
  }

  #explain(): string {
    const owing = this.#owing.map(({ partition, node }) => `${partition} ${node.id}`);
    const healed = this.#core.map(({ id }) => id);
    return `no grant (partition, asked node): ${owing.join(', ')}; healed: ${healed.join(', ')}\n${stateOf(this.#world)}`;
  }
}

function leaderships(node: SimNode): number {
  return node.core?.raft.leaderships ?? 0;
}
