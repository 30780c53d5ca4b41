/**
 * Breaks things: draws faults from the seed, lets them last for a while, and takes them back. It never takes so many
 * directories that a quorum is gone for good.
 */
import type { GroupId, NodeId, SnapshotMeta } from '../../raft/types.ts';
import type { Fate } from '../../storage/memory-store.ts';
import { bothWays, Cuts, ringOf, without } from './cuts.ts';
import { FarBehind } from './far-behind.ts';
import type { SimNetwork } from './network.ts';
import type { DiskCopy } from './raft-checker.ts';
import type { Random } from './random.ts';
import type { FaultName } from './kinds.ts';
import type { Settings } from './settings.ts';
import type { SimNode } from './sim-node.ts';
import type { Story } from './story.ts';

export interface NemesisWorld {
  readonly settings: Settings;
  readonly random: Random;
  readonly story: Story;
  readonly network: SimNetwork;
  readonly nodes: readonly SimNode[];
  readonly after: (delayMillis: number, run: () => void) => void;
  /** Nodes that lead something, as far as they know. */
  readonly leaders: () => SimNode[];
  readonly directoryLost: (node: NodeId) => void;
  readonly copyOf: (node: NodeId) => DiskCopy;
  readonly mayGoBack: (node: NodeId, copy: DiskCopy) => boolean;
  readonly wentBack: (node: NodeId, copy: DiskCopy) => void;
  /** Many clients ask this node at once, for a user of whom `leader` decides if one is given. */
  readonly crowd: (node: SimNode, leader?: SimNode) => void;
  /** Clients ask this node, one after the other, for what it leads. */
  readonly stream: (leader: SimNode) => void;
  /** Clients ask, or do not. */
  readonly ask: (isActive: boolean) => void;
  readonly whenCaughtUp: (node: SimNode, run: () => void) => void;
  /** Losing this node's directory leaves a quorum of everything. */
  readonly mayLose: (node: SimNode) => boolean;
  /** Asks for a change of the nodes, if none is under way. */
  readonly changeNodes: () => void;
  /** The last one that this node wrote or installed; undefined if there is none. */
  readonly snapshotOf: (node: NodeId, group: GroupId) => SnapshotMeta | undefined;
}

/** Whether they happen depends on what is broken already. */
const FOR_GOOD: ReadonlySet<FaultName> = new Set([
  'loseDirectory',
  'flipBits',
  'spoilSnapshot',
  'restoreDirectory',
  'makeAnew',
  'tornBatch',
]);
/** The older a copy, the less likely it may be put back. */
const COPIES_MAX = 16;
/** By then whoever can compare has found out. */
const IDLE_FAST_MILLIS = 8_000;
const IDLE_SLOW_MILLIS = 20_000;
/** A quarter of the time nothing new breaks. */
const QUIET = 0.25;

export class Nemesis {
  readonly #world: NemesisWorld;
  readonly #random: Random;
  #isActive = true;
  #isIdle = false;
  #table = 0;
  /** Leaders that take office now do not live long. */
  #isHunting = false;
  /** The only machine whose clock goes wrong: two of three would be a majority. */
  #wrongClock: SimNode | undefined;
  readonly #cuts: Cuts;
  readonly #farBehind: FarBehind;

  constructor(world: NemesisWorld) {
    this.#world = world;
    this.#random = world.random.fork();
    this.#cuts = new Cuts(world.network);
    this.#farBehind = new FarBehind({
      world: { ...world, random: this.#random },
      cut: (pairs) => this.#cuts.cut(pairs),
      isActive: () => this.#isActive,
    });
    const { faults, idle } = world.settings;
    if (faults.length > 0) this.#next();
    // The first leaders of a group are the only ones that know no time but their own.
    if (faults.includes('huntLeaders')) this.#hunt();
    if (idle !== undefined) world.after(idle.atMillis, () => this.#idle(idle.forMillis));
  }

  #next(): void {
    const { settings, after } = this.#world;
    const quiet = this.#random.chance(QUIET) ? 4 : 1;
    after(this.#random.exponential(settings.faultMeanMillis) * quiet, () => {
      if (!this.#isActive) return;
      if (!this.#isIdle) this.#strike(this.#random.pick(settings.faults));
      this.#next();
    });
  }

  /** Nothing new breaks, and what is broken stays so; but who hears a leader hears all of it. */
  stop(): void {
    this.#isActive = false;
    for (const { id } of this.#world.nodes) this.#world.network.withhold(id, false);
  }

  #hunt(): void {
    this.#isHunting = true;
    this.#later(5_000, () => {
      this.#isHunting = false;
    });
  }

  /** For as long as the nemesis is at work. */
  #later(meanMillis: number, run: () => void): void {
    this.#world.after(this.#random.exponential(meanMillis), () => {
      if (this.#isActive) run();
    });
  }

  #strike(fault: FaultName): void {
    const { story, leaders, mayLose, settings } = this.#world;
    const random = this.#random;
    const nodes = this.#world.nodes.filter(({ state }) => state !== 'absent');
    const all = nodes.map((node) => node.id);
    const up = nodes.filter((node) => node.isRunning);
    if (up.length === 0) return;
    const leading = leaders();
    const victim = random.pick(up);
    const leader = leading.length > 0 ? random.pick(leading) : victim;
    if (!FOR_GOOD.has(fault)) story.fault(fault, `(node ${victim.id})`);
    switch (fault) {
      case 'isolate':
        this.#cutBoth([victim.id], without(all, [victim.id]));
        return;
      case 'isolateLeader':
        this.#cutBoth([leader.id], without(all, [leader.id]));
        return;
      case 'halves': {
        const side = random.shuffled(all).slice(0, random.between(1, all.length - 1));
        this.#cutBoth(side, without(all, side));
        return;
      }
      case 'oneWay': {
        const other = random.pick(without(all, [victim.id]));
        const pairs: [NodeId, NodeId][] = random.chance(0.5)
          ? [[victim.id, other]]
          : without(all, [victim.id]).map((peer) => [victim.id, peer]);
        this.#cutFor(random.chance(0.5) ? pairs : pairs.map(([a, b]) => [b, a]), 2_000);
        // What was acknowledged meanwhile is lost with its connection: it has to be found out anew.
        if (random.chance(0.5)) this.#later(2_000, () => this.#break(victim.id, other));
        return;
      }
      case 'bridge': {
        const rest = random.shuffled(without(all, [victim.id]));
        const half = rest.slice(0, Math.ceil(rest.length / 2));
        this.#cutBoth(half, without(rest, half));
        return;
      }
      case 'ring':
        this.#cutFor(ringOf(random.shuffled(all)), 2_000);
        return;
      case 'clog':
        this.#cutFor([[victim.id, random.pick(without(all, [victim.id]))]], 400);
        return;
      case 'stuckRequests': {
        const others = up.filter((node) => node !== leader && node.isOpen);
        if (others.length > 0) this.#holdRequests(random.pick(others), leader);
        return;
      }
      case 'swizzle':
        for (const node of all) {
          if (!random.chance(0.5)) continue;
          this.#later(500, () => this.#cutBoth([node], without(all, [node])));
        }
        return;
      case 'break': {
        const other = random.pick(without(all, [victim.id]));
        this.#break(victim.id, other);
        return;
      }
      case 'crash':
        this.#crash(victim);
        return;
      case 'crashLeader':
        this.#crash(leader);
        return;
      case 'huntLeaders':
        this.#hunt();
        this.#crash(leader);
        return;
      case 'crashMost':
        for (const node of random.shuffled(up).slice(0, Math.ceil((nodes.length + 1) / 2))) {
          this.#crash(node);
        }
        return;
      case 'crashAll':
        for (const node of up) this.#crash(node);
        return;
      case 'crashLoop':
        this.#crashLoop(victim, random.between(2, 5));
        return;
      case 'crashInside':
        victim.dieAfter(random.between(1, 30), this.#fate());
        return;
      case 'stop':
        victim.stop();
        return;
      case 'handOver':
        leader.core?.raft.handOver();
        if (random.chance(0.5)) return;
        // What is asked meanwhile waits for the end of it, also if whoever is meant never takes over.
        this.#cutFor([[leader.id, random.pick(without(all, [leader.id]))]], 1_000);
        this.#world.crowd(leader, leader);
        return;
      case 'pause':
        this.#pause(victim);
        return;
      case 'pauseLeader':
        this.#pause(leader);
        return;
      case 'slowDisk':
        if (random.chance(0.7)) this.#slowDisks([victim], random.pick([5, 20, 100]));
        else this.#slowDisks(up, (4 * settings.timing.electionMillis) / settings.disk.syncMeanMillis);
        return;
      case 'diskError':
        victim.failDisk(random.pick(['lost', 'kept']));
        return;
      case 'lowDisk':
        victim.refuseProposals(true);
        this.#later(2_000, () => victim.refuseProposals(false));
        return;
      case 'fullMemory':
        victim.limitState(random.pick([0, 2_000, 10_000]));
        this.#later(2_000, () => victim.limitState());
        return;
      case 'wallJump':
        victim.wallOffsetMillis += random.pick([-1, 1]) * Math.floor(1.5 ** random.between(6, 31));
        return;
      case 'wrongClock':
        this.#wrongClock ??= random.chance(0.7) ? leader : victim;
        this.breakClock([1.01, 1.05, 1.1, 2, 0.5, 0.95]);
        this.#later(random.pick([2_000, 15_000]), () => this.#wrongClock?.clock.goWrong(1));
        return;
      case 'crowd':
        this.#world.crowd(victim);
        return;
      case 'newRules': {
        this.#table = Math.min(this.#table + 1, this.#world.settings.tables.length - 1);
        for (const node of nodes) if (random.chance(0.7)) node.table = this.#table;
        this.#crash(victim);
        // Whoever has read the new table and leads brings it into force, while requests are on their way.
        this.#later(1_000, () => {
          for (const node of leaders()) node.core?.raft.handOver();
        });
        return;
      }
      case 'loseDirectory':
        if (mayLose(victim)) this.#loseDirectory(victim);
        return;
      case 'flipBits':
        if (mayLose(victim)) this.#flipBits(victim);
        return;
      case 'spoilSnapshot':
        if (mayLose(victim) && victim.spoilSnapshot()) story.fault(fault, `(node ${victim.id})`);
        return;
      case 'unsoundSnapshot':
        victim.sendsUnsound = true;
        this.#later(3_000, () => {
          victim.sendsUnsound = false;
        });
        return;
      case 'restoreDirectory':
        this.#restoreDirectory(victim);
        return;
      case 'makeAnew':
        if (mayLose(victim) || victim.isStranger) this.#makeAnew(victim);
        return;
      case 'blind':
        this.#blind(victim);
        return;
      case 'editFile':
        victim.identity.editFile(
          this.#world.nodes.map(({ id }) => id),
          random,
        );
        this.#crash(victim);
        return;
      case 'longSuffix':
        this.#farBehind.longSuffix(leader);
        return;
      case 'lateForChange':
        this.#farBehind.lateForChange(victim);
        return;
      case 'crashRecovering':
        victim.dieRecovering(random.between(2, 3), this.#fate());
        this.#crash(victim);
        return;
      case 'tornBatch':
        if (mayLose(victim) && victim.tearBatch()) story.fault(fault, `(node ${victim.id})`);
        return;
    }
  }

  /** Long after the last request those who lead are gone, and then everybody asks again. */
  #idle(forMillis: number): void {
    const { after, ask, leaders } = this.#world;
    this.#isIdle = true;
    ask(false);
    if (this.#random.chance(0.5)) this.#wrongWhileIdle();
    after(forMillis, () => {
      this.#isIdle = false;
      for (const leader of leaders()) {
        if (this.#random.chance(0.5)) this.#crash(leader);
        else this.#pause(leader);
      }
      after(this.#random.unit() * 500, () => ask(true));
    });
  }

  /** Nothing disturbs the processes while one finds out that its clock is wrong, and then that it is right again. */
  #wrongWhileIdle(): void {
    const { story, after } = this.#world;
    story.fault('wrongClock', '(while idle)');
    const rate = this.#random.pick([1.05, 2, 0.9, 0.5]);
    this.breakClock([rate]);
    after(rate < 1 ? IDLE_SLOW_MILLIS : IDLE_FAST_MILLIS, () => this.#wrongClock?.clock.goWrong(1));
  }

  #cutBoth(some: readonly NodeId[], others: readonly NodeId[]): void {
    this.#cutFor(bothWays(some, others), 2_000);
  }

  /**
   * What a node asks a leader is stuck on the way. It may have been asked on another way, and answered, when it arrives
   * after all.
   */
  #holdRequests(asking: SimNode, leader: SimNode): void {
    const { crowd, settings, after } = this.#world;
    const heal = this.#cuts.cut([[asking.id, leader.id]]);
    crowd(asking, leader);
    const deadlines = 0.3 + this.#random.unit() * this.#random.pick([0.7, 3]);
    after(settings.timing.requestDeadlineMillis * deadlines, () => {
      if (this.#isActive) heal();
    });
  }

  #cutFor(pairs: readonly [NodeId, NodeId][], meanMillis: number): void {
    this.#later(meanMillis, this.#cuts.cut(pairs));
  }

  #break(node: NodeId, other: NodeId): void {
    this.#world.network.break(node, other);
    if (this.#random.chance(0.5)) this.#world.network.break(other, node);
  }

  #slowDisks(nodes: readonly SimNode[], factor: number): void {
    for (const node of nodes) node.diskFactor = factor;
    this.#later(3_000, () => {
      for (const node of nodes) node.diskFactor = 1;
    });
  }

  #crash(node: SimNode): void {
    node.crash(this.#fate());
  }

  /** What becomes of the write in flight. */
  #fate(): Fate {
    return this.#random.chance(this.#world.settings.disk.keep) ? 'kept' : 'lost';
  }

  /** A process ended, whoever did it: somebody starts it again. */
  ended(node: SimNode): void {
    this.#later(this.#random.pick([20, 200, 1_500]), () => node.start());
  }

  /** A leader took office. The first moments are the most dangerous ones: little of its log is anywhere else. */
  led(node: SimNode): void {
    if (!this.#isHunting || !this.#isActive) return;
    const { network } = this.#world;
    const { network: delays, disk, timing } = this.#world.settings;
    const fate = this.#random.unit();
    const roundTrip = 2 * (delays.delayMinMillis + delays.delayMeanMillis) + disk.syncMeanMillis;
    if (fate < 0.2) {
      // Nobody gets an entry of it, and everybody hears what time it is there.
      network.withhold(node.id, true);
      this.#later(2 * timing.heartbeatMillis + roundTrip, () => {
        network.withhold(node.id, false);
        this.#crash(node);
      });
      return;
    }
    if (fate < 0.5) {
      // Its first entry reaches its own disk and nobody else.
      const others = without(
        this.#world.nodes.map(({ id }) => id),
        [node.id],
      );
      const heal = this.#cuts.cut(others.map((other): [NodeId, NodeId] => [node.id, other]));
      this.#later(2 * disk.syncMeanMillis + 1, () => {
        node.crash(this.#random.chance(0.8) ? 'kept' : 'lost');
        heal();
      });
      return;
    }
    if (fate > 0.7) return;
    this.#later(roundTrip, () => {
      if (this.#random.chance(0.7)) this.#crash(node);
      else this.#pause(node);
    });
  }

  /** Dies again and again while it recovers. */
  #crashLoop(node: SimNode, left: number): void {
    this.#crash(node);
    if (left > 1) this.#later(150, () => this.#crashLoop(node, left - 1));
  }

  #pause(node: SimNode): void {
    node.pause();
    this.#later(this.#random.pick([50, 500, 3_000]), () => node.resume());
  }

  /** The clock of one machine runs at one of these multiples of what is right. */
  breakClock(rates: readonly number[]): void {
    const up = this.#world.nodes.filter(({ isUp }) => isUp);
    if (up.length > 0) this.#wrongClock ??= this.#random.pick(up);
    this.#wrongClock?.clock.goWrong(this.#random.pick(rates));
  }

  #flipBits(node: SimNode): void {
    this.#crash(node);
    if (node.flipBits()) this.#world.story.fault('flipBits', `(node ${node.id})`);
  }

  /** A copy is made now and put back later: the node starts as it was then. */
  #restoreDirectory(node: SimNode, copies = COPIES_MAX): void {
    const { copyOf, mayLose, mayGoBack, wentBack, whenCaughtUp, story } = this.#world;
    if (!node.isUp || node.isDoubtful) return;
    const copy = copyOf(node.id);
    const disk = node.copyDirectory();
    this.#later(300, () => {
      if (!node.isUp || !mayLose(node)) return;
      if (!mayGoBack(node.id, copy)) {
        if (copies > 1) this.#restoreDirectory(node, copies - 1);
        return;
      }
      // What is in flight would be a promise more.
      node.crash('lost');
      story.fault('restoreDirectory', `(node ${node.id})`);
      wentBack(node.id, copy);
      node.putBack(disk);
      whenCaughtUp(node, () => node.trustDirectory());
    });
  }

  #makeAnew(node: SimNode): void {
    const { directoryLost, story } = this.#world;
    story.fault('makeAnew', `(node ${node.id})`);
    directoryLost(node.id);
    node.makeAnew();
  }

  /** A node hears nothing of group 0, and everything else: it lags behind in who belongs to the cluster. */
  #blind(node: SimNode): void {
    const { network, changeNodes } = this.#world;
    network.blind(node.id, true);
    changeNodes();
    this.#later(8_000, () => network.blind(node.id, false));
  }

  #loseDirectory(node: SimNode): void {
    const { directoryLost, story } = this.#world;
    story.fault('loseDirectory', `(node ${node.id})`);
    directoryLost(node.id);
    node.lose();
  }
}
