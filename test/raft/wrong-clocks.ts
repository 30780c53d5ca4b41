/**
 * Group clocks that seem right and are wrong, to show that the simulation detects them. Each is a rule that was
 * considered and rejected.
 */
import type { TestClock } from './node.ts';

interface Anchor {
  readonly term: number;
  readonly timeMillis: number;
  readonly seenAtMillis: number;
}

abstract class AnchoredClock implements TestClock {
  protected anchored: Anchor | undefined = undefined;
  private readonly monotonicMillis: () => number;
  private readonly originMillis: () => number;

  constructor(monotonicMillis: () => number, originMillis: () => number) {
    this.monotonicMillis = monotonicMillis;
    this.originMillis = originMillis;
  }

  nowMillis(): number {
    return Math.floor(this.estimate() ?? this.originMillis());
  }

  protected estimate(): number | undefined {
    const { anchored } = this;
    return anchored && anchored.timeMillis + this.monotonicMillis() - anchored.seenAtMillis;
  }

  protected moveTo(term: number, timeMillis: number): void {
    this.anchored = { term, timeMillis, seenAtMillis: this.monotonicMillis() };
  }

  abstract anchor(term: number, timeMillis: number): void;
}

/** The larger estimate always wins: one fast leader speeds up all later ones. */
export class LargerEstimateWins extends AnchoredClock {
  anchor(term: number, timeMillis: number): void {
    if ((this.estimate() ?? -1) < timeMillis) this.moveTo(term, timeMillis);
  }
}

/** The newest leader heard of wins, even if its entries never reached this log. */
export class NewestLeaderWins extends AnchoredClock {
  anchor(term: number, timeMillis: number): void {
    const { anchored } = this;
    if (anchored !== undefined) {
      if (term < anchored.term) return;
      if (term === anchored.term && (this.estimate() ?? -1) >= timeMillis) return;
    }
    this.moveTo(term, timeMillis);
  }

  heard(term: number, timeMillis: number): void {
    this.anchor(term, timeMillis);
  }
}

/** No clock of the group at all: every leader stamps by its own wall clock. */
export class WallClock implements TestClock {
  readonly nowMillis: () => number;

  constructor(_monotonicMillis: () => number, wallMillis: () => number) {
    this.nowMillis = () => Math.floor(wallMillis());
  }

  anchor(): void {}
}
