/** While it lasts, leaders that take office do not live long: their first moments are the most dangerous ones. */
import { without } from './cuts.ts';
import type { Hand } from './nemesis-world.ts';
import type { NetworkFaults } from './network-faults.ts';
import type { SimNode } from './sim-node.ts';

export class LeaderHunt {
  readonly #hand: Hand;
  readonly #network: NetworkFaults;
  #isOn = false;

  constructor(hand: Hand, network: NetworkFaults) {
    this.#hand = hand;
    this.#network = network;
  }

  begin(): void {
    this.#isOn = true;
    this.#hand.later(5_000, () => {
      this.#isOn = false;
    });
  }

  /** A leader took office: little of its log is anywhere else. */
  led(node: SimNode): void {
    if (!this.#isOn || !this.#hand.isActive) return;
    const { random, world } = this.#hand;
    const { network: delays, disk } = world.settings;
    const fate = random.unit();
    const roundTrip = 2 * (delays.delayMinMillis + delays.delayMeanMillis) + disk.syncMeanMillis;
    if (fate < 0.2) this.#withhold(node, roundTrip);
    else if (fate < 0.5) this.#silence(node);
    else if (fate <= 0.7) {
      this.#hand.later(roundTrip, () => {
        if (random.chance(0.7)) this.#hand.crash(node);
        else this.#hand.pause(node);
      });
    }
  }

  /** Nobody gets an entry of it, and everybody hears what time it is there. */
  #withhold(node: SimNode, roundTripMillis: number): void {
    const { network, settings } = this.#hand.world;
    network.censor.withhold(node.id, true);
    this.#hand.later(2 * settings.timing.heartbeatMillis + roundTripMillis, () => {
      network.censor.withhold(node.id, false);
      this.#hand.crash(node);
    });
  }

  /** Its first entry reaches its own disk and nobody else. */
  #silence(node: SimNode): void {
    const { random, world } = this.#hand;
    const all = world.nodes.map(({ id }) => id);
    const heal = this.#network.cut(without(all, [node.id]).map((other) => [node.id, other]));
    this.#hand.later(2 * world.settings.disk.syncMeanMillis + 1, () => {
      node.crash(random.chance(0.8) ? 'kept' : 'lost');
      heal();
    });
  }
}
