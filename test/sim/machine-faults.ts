/** Faults of machines: their clocks, the speed of their disks, and limits of space. */
import type { Faults, Hand, Strike } from './nemesis-world.ts';
import type { SimNode } from './sim-node.ts';

type Name =
  | 'slowDisk'
  | 'diskError'
  | 'lowDisk'
  | 'fullMemory'
  | 'wallJump'
  | 'wrongClock'
  | 'unsoundSnapshot';

/** By then the nodes that can compare clocks have found the wrong one. */
const IDLE_FAST_MILLIS = 8_000;
const IDLE_SLOW_MILLIS = 20_000;

export class MachineFaults {
  readonly #hand: Hand;
  /** The only machine whose clock goes wrong: two of three would be a majority. */
  #wrongClock: SimNode | undefined;

  constructor(hand: Hand) {
    this.#hand = hand;
  }

  readonly faults: Faults<Name> = {
    slowDisk: ({ victim, up }) => {
      const { timing, disk } = this.#hand.world.settings;
      if (this.#hand.random.chance(0.7)) this.#slowDisks([victim], this.#hand.random.pick([5, 20, 100]));
      else this.#slowDisks(up, (4 * timing.electionMillis) / disk.syncMeanMillis);
    },
    diskError: ({ victim }) => victim.failDisk(this.#hand.random.pick(['lost', 'kept'])),
    lowDisk: ({ victim }) => {
      victim.setLowDisk(true);
      this.#hand.later(2_000, () => victim.setLowDisk(false));
    },
    fullMemory: ({ victim }) => {
      victim.limitState(this.#hand.random.pick([0, 2_000, 10_000]));
      this.#hand.later(2_000, () => victim.limitState());
    },
    wallJump: ({ victim }) => {
      const { random, world } = this.#hand;
      const sign = random.pick([-1, 1]);
      const exponent = random.between(6, 31);
      // Half of the forward jumps are those of a time server that all machines follow.
      const isServer = sign > 0 && exponent % 2 === 0;
      const byMillis = sign * Math.floor(1.5 ** exponent);
      for (const node of isServer ? world.nodes : [victim]) node.wall.move(byMillis);
    },
    wrongClock: (strike) => this.#breakClockFor(strike),
    unsoundSnapshot: ({ victim }) => {
      victim.sendsUnsound = true;
      this.#hand.later(3_000, () => {
        victim.sendsUnsound = false;
      });
    },
  };

  #slowDisks(nodes: readonly SimNode[], factor: number): void {
    const ends = nodes.map((node) => node.slowDisk(factor));
    this.#hand.later(3_000, () => {
      for (const end of ends) end();
    });
  }

  #breakClockFor({ victim, leader }: Strike): void {
    const { random } = this.#hand;
    this.#wrongClock ??= random.chance(0.7) ? leader : victim;
    this.breakClock([1.01, 1.05, 1.1, 2, 0.5, 0.95]);
    this.#hand.later(random.pick([2_000, 15_000]), () => this.#wrongClock?.clock.goWrong(1));
  }

  /** The clock of one machine runs at one of these multiples of the right rate. */
  breakClock(rates: readonly number[]): void {
    const { random, world } = this.#hand;
    const up = world.nodes.filter(({ isUp }) => isUp);
    if (up.length > 0) this.#wrongClock ??= random.pick(up);
    this.#wrongClock?.clock.goWrong(random.pick(rates));
  }

  /** No process is disturbed while one finds out that its clock is wrong, and later that it is right again. */
  breakClockWhileIdle(): void {
    const { story, after } = this.#hand.world;
    story.fault('wrongClock', '(while idle)');
    const rate = this.#hand.random.pick([1.05, 2, 0.9, 0.5]);
    this.breakClock([rate]);
    after(rate < 1 ? IDLE_SLOW_MILLIS : IDLE_FAST_MILLIS, () => this.#wrongClock?.clock.goWrong(1));
  }
}
