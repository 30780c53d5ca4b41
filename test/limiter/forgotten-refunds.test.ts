/** A refund of a forgotten grant gives nothing back to a key that has become known again. */
import { describe, expect, it } from 'vitest';
import type { AllowRequest } from '../../src/api/request.ts';
import { RULE_METERS } from '../../src/api/rule.ts';
import { AllowBatchBuilder } from '../../src/limiter/log/batch-builder.ts';
import { decodeCommand } from '../../src/limiter/log/command.ts';
import type { Decision } from '../../src/limiter/decision.ts';
import { validateRuleTable } from '../../src/limiter/rules.ts';
import { LimiterStateMachine } from '../../src/limiter/state-machine.ts';

const LIMIT = 10;
const FAR_MILLIS = 1_005;

class Machine {
  readonly machine = new LimiterStateMachine();
  now = 1_790_000_000_000;
  #index = 1;

  constructor(meter: (typeof RULE_METERS)[number]) {
    const rules = [{ id: 'rule', limit: LIMIT, windowMillis: 1_000, meter }];
    const table = validateRuleTable({ version: 1, rules });
    this.machine.apply({ type: 'rules', table }, { index: 1, term: 1, timeMillis: this.now });
  }

  one(request: Parameters<AllowBatchBuilder['add']>[0]): Decision | undefined {
    const builder = new AllowBatchBuilder();
    builder.add(request);
    this.#index += 1;
    const place = { index: this.#index, term: 1, timeMillis: this.now };
    let reported: Decision | undefined;
    this.machine.apply(decodeCommand(builder.take()), place, (_, decision) => (reported = decision));
    return reported;
  }

  sweep(): void {
    this.#index += 1;
    this.machine.apply({ type: 'sweep' }, { index: this.#index, term: 1, timeMillis: this.now });
  }

  /** The number of requests that are granted, of many. */
  grantedOf(request: AllowRequest): number {
    return Array.from({ length: 3 * LIMIT }, () => this.one(request)?.allowed).filter(Boolean).length;
  }
}

describe('a refund of a grant whose key was forgotten', () => {
  it.each(RULE_METERS)('gives back none of the grants since then: %s', (meter) => {
    const state = new Machine(meter);
    expect(state.one({ userId: 'ada', cost: LIMIT, requestId: 'r1' })?.allowed).toBe(true);
    state.now += 5_000;
    for (let i = 0; i < 5; i += 1) state.sweep();
    expect(state.machine.stats().keys).toBe(0);
    const late = { userId: 'ada', timestampMillis: FAR_MILLIS };
    expect(state.grantedOf(late)).toBe(LIMIT);
    expect(state.one({ ask: 'refund', userId: 'ada', requestId: 'r1' })?.refund).toMatchObject({
      refunded: true,
    });
    expect(state.grantedOf(late)).toBe(0);
  });
});
