/**
 * Injects faults: the seed decides which fault strikes which node, and when. The faults themselves are in the files for
 * network, processes, machines and directories. It never destroys so many directories that a quorum is lost for good.
 */
import { DirectoryFaults } from './directory-faults.ts';
import { FarBehind } from './far-behind.ts';
import type { FaultName } from './kinds.ts';
import { LeaderHunt } from './leader-hunt.ts';
import { MachineFaults } from './machine-faults.ts';
import { type Faults, Hand, type NemesisWorld } from './nemesis-world.ts';
import { NetworkFaults } from './network-faults.ts';
import { ProcessFaults } from './process-faults.ts';
import type { Random } from './random.ts';
import type { SimNode } from './sim-node.ts';

/** The chance that the pause before the next fault is four times as long. */
const QUIET = 0.25;

export class Nemesis {
  readonly #world: NemesisWorld;
  readonly #random: Random;
  readonly #hand: Hand;
  readonly #hunt: LeaderHunt;
  readonly #machines: MachineFaults;
  readonly #directories: DirectoryFaults;
  readonly #faults: Faults<FaultName>;
  #isIdle = false;

  constructor(world: NemesisWorld) {
    this.#world = world;
    this.#random = world.random.fork();
    const hand = new Hand(world, this.#random);
    this.#hand = hand;
    const network = new NetworkFaults(hand);
    this.#hunt = new LeaderHunt(hand, network);
    this.#machines = new MachineFaults(hand);
    this.#directories = new DirectoryFaults(hand);
    const farBehind = new FarBehind(hand, (paths) => network.cut(paths));
    this.#faults = {
      ...network.faults,
      ...new ProcessFaults(hand, network).faults,
      ...this.#machines.faults,
      ...this.#directories.faults,
      huntLeaders: ({ leader }) => {
        this.#hunt.begin();
        hand.crash(leader);
      },
      crowd: ({ victim }) => world.crowd(victim),
      longSuffix: ({ leader }) => farBehind.longSuffix(leader),
      lateForChange: ({ victim }) => farBehind.lateForChange(victim),
    };
    const { faults, idle } = world.settings;
    if (faults.length > 0) this.#next();
    // The first leaders of a group are the only ones that know no time but their own.
    if (faults.includes('huntLeaders')) this.#hunt.begin();
    if (idle !== undefined) world.after(idle.atMillis, () => this.#idle(idle.forMillis));
  }

  #next(): void {
    const { settings, after } = this.#world;
    const quiet = this.#random.chance(QUIET) ? 4 : 1;
    after(this.#random.exponential(settings.faultMeanMillis) * quiet, () => {
      if (!this.#hand.isActive) return;
      if (!this.#isIdle) this.#strike(this.#random.pick(settings.faults));
      this.#next();
    });
  }

  /** No new fault begins, and active ones stay; but a node that hears a leader hears all its messages. */
  stop(): void {
    this.#hand.isActive = false;
    for (const { id } of this.#world.nodes) this.#world.network.censor.withhold(id, false);
  }

  #strike(fault: FaultName): void {
    const nodes = this.#world.nodes.filter(({ state }) => state !== 'absent');
    const up = nodes.filter((node) => node.isRunning);
    if (up.length === 0) return;
    const leading = this.#world.leaders();
    const victim = this.#random.pick(up);
    const leader = leading.length > 0 ? this.#random.pick(leading) : victim;
    if (!(fault in this.#directories.faults)) this.#world.story.fault(fault, `(node ${victim.id})`);
    this.#faults[fault]({ victim, leader, up, nodes, all: nodes.map(({ id }) => id) });
  }

  /** Long after the last request the leaders fail, and then all clients ask again. */
  #idle(forMillis: number): void {
    const { after, ask, leaders } = this.#world;
    this.#isIdle = true;
    ask(false);
    if (this.#random.chance(0.5)) this.#machines.breakClockWhileIdle();
    after(forMillis, () => {
      this.#isIdle = false;
      for (const leader of leaders()) {
        if (this.#random.chance(0.5)) this.#hand.crash(leader);
        else this.#hand.pause(leader);
      }
      after(this.#random.unit() * 500, () => ask(true));
    });
  }

  /** A process ended for any reason: it is started again. */
  ended(node: SimNode): void {
    this.#hand.later(this.#random.pick([20, 200, 1_500]), () => node.start());
  }

  led(node: SimNode): void {
    this.#hunt.led(node);
  }

  /** The clock of one machine runs at one of these multiples of the right rate. */
  breakClock(rates: readonly number[]): void {
    this.#machines.breakClock(rates);
  }
}
