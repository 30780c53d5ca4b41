/** While it lasts, new leaders do not live long: their first moments are the most dangerous ones. */
import { bothWays, without } from './cuts.ts';
import type { Hand } from './nemesis-world.ts';
import type { NetworkFaults } from './network-faults.ts';
import type { SimNode } from './sim-node.ts';

/** How often a leader whose entries are withheld may wait for a node that starts. */
const TRIES_MAX = 20;

export class LeaderHunt {
  readonly #hand: Hand;
  readonly #network: NetworkFaults;
  #isOn = false;
  /** It crashed with an entry that no other node has. There was no leader since. */
  #alone: SimNode | undefined;
  /** A leader is cut off and writes slowly: this reconnects it once another node leads. */
  #succeeded: (() => void) | undefined;

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

  /** A node became leader: little of its log is anywhere else. */
  led(node: SimNode): void {
    if (!this.#isOn || !this.#hand.isActive) return;
    const { random, world } = this.#hand;
    const { network: delays, disk } = world.settings;
    const fate = random.unit();
    const roundTrip = 2 * (delays.delayMinMillis + delays.delayMeanMillis) + disk.syncMeanMillis;
    const alone = this.#alone;
    this.#alone = undefined;
    this.#succeeded?.();
    if (alone !== undefined && fate < 0.8) this.#withhold(node, roundTrip, alone);
    else if (fate < 0.2) this.#withhold(node, roundTrip);
    else if (fate < 0.5) this.#silence(node);
    else if (fate <= 0.7) {
      this.#hand.later(roundTrip, () => {
        if (random.chance(0.7)) this.#hand.crash(node);
        else this.#hand.pause(node);
      });
    } else if (fate > 0.85) this.#detain(node);
  }

  /** No node gets its entries, but all get its group time: for a moment, or until `last` has heard it too. */
  #withhold(node: SimNode, roundTripMillis: number, last?: SimNode): void {
    const { network, settings, after } = this.#hand.world;
    const { life } = node;
    network.censor.withhold(node.id, true);
    const end = (triesLeft: number): void => {
      after(2 * settings.timing.heartbeatMillis + roundTripMillis, () => {
        if (!this.#hand.isActive) return;
        const isAwaited = last !== undefined && !last.isRunning;
        if (isAwaited && triesLeft > 0 && node.isRunning && node.life === life) {
          end(triesLeft - 1);
          return;
        }
        network.censor.withhold(node.id, false);
        this.#hand.crash(node);
      });
    };
    end(TRIES_MAX);
  }

  /** Its first entry reaches only its own disk. */
  #silence(node: SimNode): void {
    const { random, world } = this.#hand;
    const all = world.nodes.map(({ id }) => id);
    const heal = this.#network.cut(without(all, [node.id]).map((other) => [node.id, other]));
    this.#hand.later(2 * world.settings.disk.syncMeanMillis + 1, () => {
      this.#alone = node;
      node.crash(random.chance(0.8) ? 'kept' : 'lost');
      heal();
    });
  }

  /**
   * Cuts it off until another node leads, and slows its disk: then the other's entries replace its own while those are
   * being written.
   */
  #detain(node: SimNode): void {
    const { timing, disk } = this.#hand.world.settings;
    const all = this.#hand.world.nodes.map(({ id }) => id);
    const quicken = node.slowDisk((4 * timing.electionMillis) / disk.syncMeanMillis);
    const heal = this.#network.cut(bothWays([node.id], without(all, [node.id])));
    const end = (): void => {
      if (this.#succeeded !== end) return;
      this.#succeeded = undefined;
      heal();
    };
    this.#succeeded = end;
    const { after } = this.#hand.world;
    after(4 * timing.electionMillis, end);
    after(8 * timing.electionMillis, quicken);
  }
}
