/**
 * Group time never runs ahead of real time, with any clocks and leaders. That it does not fall behind without faults is
 * checked in `time-checker.ts`.
 */
import type { Entry, GroupClock, NodeId, SnapshotMeta } from '../../raft/types.ts';
import type { Committed, GroupHistory } from './group-history.ts';
import { check } from './story.ts';

/** Two stamps are whole milliseconds, rounded down: they may be one further apart than the moments were. */
const ROUNDING_MILLIS = 1 + 1e-3;

export interface GroupTimeInit {
  readonly now: () => number;
  /** The fastest rate of a right clock. */
  readonly driftPpm: number;
  /** How much the clock of a node gained on a clock of this rate between two moments, where it was faster. */
  readonly gainedBetween: (node: NodeId, fromMillis: number, toMillis: number, rate: number) => number;
  /** Messages may be repeated or reordered, so an old reading of the time may come last. */
  readonly mayBeLate: boolean;
}

export class GroupTime {
  readonly #init: GroupTimeInit;
  readonly #fastestRate: number;

  constructor(init: GroupTimeInit) {
    this.#init = init;
    this.#fastestRate = 1 + init.driftPpm / 1_000_000;
  }

  /**
   * Between two stamps of the log, group time ran on the clocks of all leaders in between, so it may have gained what
   * those gained.
   */
  gained(group: GroupHistory, entry: Entry, stampedAt: number | undefined): number {
    if (stampedAt === undefined) return group.gainedMillis;
    const { atMillis, term } = group.stamped ?? { atMillis: stampedAt, term: entry.term };
    const leaders = new Set<NodeId>();
    for (const [led, leader] of group.leaderOf) if (led >= term && led <= entry.term) leaders.add(leader);
    for (const leader of leaders)
      group.gainedMillis += this.#init.gainedBetween(leader, atMillis, stampedAt, this.#fastestRate);
    group.stamped = { atMillis: stampedAt, term: entry.term };
    return group.gainedMillis;
  }

  /**
   * For any two entries of one log, the elapsed group time is at most the elapsed real time plus the gain of wrong
   * clocks.
   */
  committed(group: GroupHistory, { entry, stampedAt, gainedMillis }: Committed): void {
    if (stampedAt !== undefined) {
      const lead = entry.timeMillis - gainedMillis - stampedAt * this.#fastestRate;
      check(
        lead <= group.lead + ROUNDING_MILLIS,
        () => `group time of group ${group.id} outran real time by ${lead - group.lead} ms at ${entry.index}`,
      );
      group.lead = Math.min(group.lead, lead);
    }
    group.leads[entry.index] = group.lead;
  }

  /**
   * A node that installs a snapshot uses the time of its last entry: neither earlier, nor later than can have passed.
   */
  installed(group: GroupHistory, clock: GroupClock, meta: SnapshotMeta): void {
    const now = this.#init.now();
    const rate = this.#fastestRate;
    for (const node of group.disks.keys()) if (this.#init.gainedBetween(node, 0, now, rate) > 0) return;
    const estimate = clock.nowMillis();
    const max = (group.leads[meta.index] ?? Infinity) + now * rate + ROUNDING_MILLIS;
    check(
      estimate <= max && (this.#init.mayBeLate || estimate >= meta.timeMillis),
      () =>
        `group time is ${estimate} after snapshot ${meta.index} of group ${group.id}, ` +
        `must be between ${meta.timeMillis} and ${max}`,
    );
  }
}
