/**
 * Random histories of a fixed window under random steps of UTC, checked against two laws: a grant counts until its own
 * window would have ended, and no window of UTC holds more than the limit.
 */
import { describe, expect, it } from 'vitest';
import { decodeCommand, encodeUtc } from '../../src/limiter/log/command.ts';
import type { Rule } from '../../src/api/rule.ts';
import { Random } from '../sim/random.ts';
import { check } from '../sim/story.ts';
import { Harness, harnessWith, restoreInto, snapshotOf } from './harness.ts';

const HISTORIES = 120;
const OPERATIONS = 120;

interface Grant {
  readonly id: string;
  readonly atMillis: number;
  readonly cost: number;
  /** Its window of UTC, and the end of that window in group time, computed at the grant. */
  readonly window: number;
  readonly endMillis: number;
  /** The number of steps of UTC before the grant. */
  readonly steps: number;
  isRefunded: boolean;
  /** True if it was refunded when it was uncertain how much of it still counted. */
  isRefundedLate: boolean;
}

class History {
  readonly random: Random;
  readonly rule: Rule;
  harness: Harness;
  readonly grants: Grant[] = [];
  aheadMillis = 0;
  steps = 0;
  readonly stepped: { readonly atMillis: number; readonly aheadMillis: number }[] = [];

  constructor(seed: number) {
    this.random = new Random(seed);
    const windowMillis = this.random.pick([1_000, 7_777, 60_000]);
    this.rule = {
      id: 'r',
      limit: this.random.between(1, 12),
      windowMillis,
      clock: 'cluster',
      meter: 'fixedWindow',
    };
    this.harness = harnessWith(this.rule);
  }

  get now(): number {
    return this.harness.nowMillis;
  }

  costOf(isMeant: (grant: Grant) => boolean): number {
    return this.grants.filter(isMeant).reduce((sum, { cost }) => sum + cost, 0);
  }

  run(): void {
    for (let i = 0; i < OPERATIONS; i += 1) {
      const { windowMillis } = this.rule;
      this.harness.nowMillis += this.random.pick([
        0,
        1,
        Math.floor(windowMillis / 10),
        Math.floor(windowMillis / 2),
        windowMillis,
      ]);
      const unit = this.random.unit();
      if (unit < 0.15) this.step();
      else if (unit < 0.3) this.refund();
      else if (unit < 0.35) this.copy();
      else this.ask(`id${i}`);
    }
  }

  step(): void {
    const { windowMillis } = this.rule;
    this.aheadMillis += this.random.pick([
      1,
      Math.floor(windowMillis / 3),
      windowMillis - 1,
      5 * windowMillis + 7,
    ]);
    this.steps += 1;
    this.stepped.push({ atMillis: this.now, aheadMillis: this.aheadMillis });
    this.harness.machine.apply(decodeCommand(encodeUtc(this.aheadMillis)), this.harness.next());
    this.harness.nowMillis += 1;
  }

  /** A copy of the state in another state machine. */
  copy(): void {
    const { machine, index, nowMillis } = this.harness;
    const copy = new Harness();
    restoreInto(copy.machine, snapshotOf(machine));
    check(copy.machine.hash() === machine.hash(), () => 'the copy of a state has another hash');
    copy.index = index;
    copy.nowMillis = nowMillis;
    this.harness = copy;
  }

  refund(): void {
    const recent = this.grants.filter(
      ({ isRefunded, atMillis }) => !isRefunded && this.now - atMillis < 100_000,
    );
    if (recent.length === 0) return;
    const grant = this.random.pick(recent);
    const [reported] = this.harness.ask({ ask: 'refund', userId: 'ada', requestId: grant.id });
    check(reported?.refund?.refunded === true, () => `${grant.id} is not known`);
    grant.isRefunded = true;
    grant.isRefundedLate = grant.steps < this.steps;
  }

  ask(id: string): void {
    const { limit, windowMillis } = this.rule;
    const cost = this.random.between(1, limit);
    const { now, harness } = this;
    const live = this.costOf(({ endMillis, isRefunded }) => !isRefunded && endMillis > now);
    // If several steps were merged, grants between them may count longer by the size of the steps, and a refund does
    // not know by how much.
    const mayCount = this.costOf(({ endMillis, isRefunded, isRefundedLate, atMillis }) => {
      if (isRefunded && !isRefundedLate) return false;
      const before = this.stepped.findLast((step) => step.atMillis < atMillis - 3 * windowMillis);
      const steppedMillis = this.aheadMillis - (before?.aheadMillis ?? 0);
      return endMillis + steppedMillis > now && atMillis > now - 3 * windowMillis;
    });
    const utcMillis = now + this.aheadMillis;
    const window = Math.floor(utcMillis / windowMillis);
    const ask = { userId: 'ada', cost, requestId: id };
    const { allowed, retryAfterMillis } = harness.one(ask);
    if (!allowed) {
      const isDeniedAt = (millis: number): boolean => harness.machine.quickDenial(ask, millis) !== undefined;
      const isExact = isDeniedAt(now + retryAfterMillis - 1) && !isDeniedAt(now + retryAfterMillis);
      check(mayCount + cost > limit, () => `${id} is denied ${cost} with ${mayCount} of ${limit} spent`);
      check(isExact, () => `${id} reports a wait of ${retryAfterMillis} ms`);
      return;
    }
    check(live + cost <= limit, () => `${id} is granted ${cost} with ${live} of ${limit} spent`);
    const endMillis = (window + 1) * windowMillis - this.aheadMillis;
    this.grants.push({
      id,
      atMillis: now,
      cost,
      window,
      endMillis,
      steps: this.steps,
      isRefunded: false,
      isRefundedLate: false,
    });
    const inWindow = this.costOf((grant) => grant.window === window && !grant.isRefunded);
    check(inWindow <= limit, () => `${inWindow} of ${limit} in window ${window} of UTC, with ${id}`);
  }
}

describe('a fixed window while UTC is stepped', () => {
  it('frees no grant early, counts none for long, and keeps to the limit in every window of UTC', () => {
    let grants = 0;
    for (let seed = 1; seed <= HISTORIES; seed += 1) {
      const history = new History(seed);
      try {
        history.run();
      } catch (error) {
        throw new Error(`history ${seed}`, { cause: error });
      }
      grants += history.grants.length;
    }
    expect(grants).toBeGreaterThan(10 * HISTORIES);
  });
});
