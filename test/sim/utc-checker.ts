/**
 * UTC in the logs: never ahead of two wall clocks, so that no single clock can set it; and without faults it soon
 * matches a majority of the wall clocks of all nodes.
 */
import type { GroupId } from '../../raft/types.ts';
import { decodeCommand } from '../../src/limiter/log/command.ts';
import type { Committed } from './group-history.ts';
import type { SimNode } from './sim-node.ts';
import { StableLeaders } from './stable-leaders.ts';
import { check } from './story.ts';
import type { TimeCheckerInit } from './time-checker.ts';

const CHECK_MILLIS = 250;
/** After this time a leader has logged UTC. */
const STABLE_MILLIS = 4_000;
/** The lag that the product allows, and a second until the next question. */
const LAG_MILLIS_MAX = 1_000 + 1_000;
/** A peer's answer may be ten seconds old, and a wrong clock runs twice as fast. */
const GAINED_MILLIS_MAX = 10_500;

export class UtcChecker {
  readonly #init: TimeCheckerInit;
  #healthySince = Infinity;
  readonly #leaders: StableLeaders;

  constructor(init: TimeCheckerInit) {
    this.#init = init;
    this.#leaders = new StableLeaders(init, STABLE_MILLIS);
  }

  /** No faults from now on. */
  healed(): void {
    this.#healthySince = this.#init.now();
    this.#checkLater();
  }

  committed(group: GroupId, { entry }: Committed): void {
    if (entry.kind !== 'command') return;
    const command = decodeCommand(entry.data);
    if (command.type !== 'utc') return;
    const { nodes, now } = this.#init;
    const utcMillis = entry.timeMillis + command.aheadMillis - GAINED_MILLIS_MAX;
    const reached = nodes().filter(({ wall }) => now() + wall.offsetMaxMillis >= utcMillis);
    check(
      reached.length >= 2,
      () =>
        `entry ${entry.index} of group ${group} says that UTC is ${utcMillis} at ${now()}, as ${reached.length} wall clocks do`,
    );
  }

  /** Much more than a question, its answer and an entry take. */
  get #delayMillis(): number {
    const { network, disk } = this.#init.settings;
    const slow = network.slowFraction > 0 ? network.slowMillis : 0;
    const pathMillis = network.delayMinMillis + 30 * network.delayMeanMillis + slow;
    return 200 + 4 * pathMillis + 50 * disk.syncMeanMillis;
  }

  #checkLater(): void {
    this.#init.after(CHECK_MILLIS, () => {
      this.#check();
      this.#checkLater();
    });
  }

  #check(): void {
    const { nodes, now } = this.#init;
    const isHealthy = now() - this.#healthySince >= STABLE_MILLIS;
    if (!isHealthy || nodes().some(({ clock }) => clock.wrongness !== 1)) return;
    this.#leaders.each((partition, leader) => this.#compare(partition, leader));
  }

  #compare(partition: number, { id, core }: SimNode): void {
    const replica = core?.partitions.get(partition);
    const members = core?.meta.state?.nodes ?? [];
    if (replica?.ruleTable === undefined) return;
    const walls = members.flatMap((member) => {
      const node = this.#init.nodes().find((one) => one.id === member.id);
      // A node with a new directory under its old id is ignored by the others.
      return node?.isRunning === true && !node.isStranger ? [node.wallMillis()] : [];
    });
    const utcMillis = walls.toSorted((a, b) => b - a)[Math.floor(members.length / 2)];
    if (utcMillis === undefined) return;
    const lagMillis = utcMillis - replica.utcMillis;
    check(
      lagMillis <= LAG_MILLIS_MAX + this.#delayMillis,
      () => `partition ${partition} of node ${id} is ${lagMillis} ms behind the wall clocks of a majority`,
    );
  }
}
