/** Drives state machines as a log does: with encoded commands at increasing positions. */

import { AllowBatchBuilder } from '../../src/limiter/log/batch-builder.ts';
import { encodeCustomers } from '../../src/limiter/log/customer-entry.ts';
import type { CustomerAction } from '../../src/api/customer.ts';
import { decodeCommand, encodeRules } from '../../src/limiter/log/command.ts';
import type { Decision } from '../../src/limiter/decision.ts';
import type { BatchedRequest } from '../../src/api/user-request.ts';
import { type RuleTable, validateRuleTable } from '../../src/limiter/rules.ts';
import { LimiterStateMachine } from '../../src/limiter/state-machine.ts';
import type { StateSnapshot } from '../../src/limiter/state/state-writer.ts';
import type { Rule } from '../../src/api/rule.ts';

/** A start of group time near that of a wall clock, so that near and far epochs differ. */
export const START = 1_700_000_000_000;

export class Harness {
  readonly machine = new LimiterStateMachine();
  index = 0;
  nowMillis = START;

  /** Applies one batch at group time `nowMillis` and returns its decisions. */
  ask(...requests: BatchedRequest[]): Decision[] {
    const command = decodeCommand(entryOf(requests));
    const decisions: Decision[] = [];
    this.machine.apply(command, this.next(), (i, decision) => {
      decisions[i] = decision;
    });
    return decisions;
  }

  /** Applies one customer command. */
  say(userId: string, action: CustomerAction): Decision {
    const reported: Decision[] = [];
    const command = decodeCommand(encodeCustomers([{ ask: 'customer', userId, action }]));
    this.machine.apply(command, this.next(), (_, decision) => reported.push(decision));
    return reported[0]!;
  }

  one(request: BatchedRequest): Decision {
    return this.ask(request)[0]!;
  }

  allows(userId: string, timestampMillis?: number): boolean {
    return this.one({ userId, timestampMillis }).allowed;
  }

  rules(table: RuleTable): void {
    this.machine.apply(decodeCommand(encodeRules(table)), this.next());
  }

  next(): { index: number; term: number; timeMillis: number } {
    this.index += 1;
    return { index: this.index, term: 1 + (this.index >>> 5), timeMillis: this.nowMillis };
  }
}

/** The bytes of an entry with these requests. */
export function entryOf(requests: readonly BatchedRequest[]): Uint8Array {
  const builder = new AllowBatchBuilder();
  for (const request of requests) builder.add(request);
  return builder.take();
}

/** A complete snapshot of the present state. */
export function snapshotOf(machine: LimiterStateMachine): Uint8Array[] {
  return chunksOf(machine.snapshot());
}

/** All remaining chunks of a snapshot. */
export function chunksOf(snapshot: StateSnapshot): Uint8Array[] {
  const chunks: Uint8Array[] = [];
  for (let chunk = snapshot.next(); chunk !== undefined; chunk = snapshot.next()) chunks.push(chunk);
  return chunks;
}

/** Replaces the state of a machine. */
export function restoreInto(machine: LimiterStateMachine, chunks: readonly Uint8Array[]): void {
  const restore = machine.restore();
  for (const chunk of chunks) restore.add(chunk);
  restore.complete();
  restore.install();
}

/** A rule table without clock drift: the effective window is the window plus one millisecond. */
export function tableOf(version: number, rules: Partial<Rule>[], more: Partial<RuleTable> = {}): RuleTable {
  return validateRuleTable({
    version,
    clockDriftPpm: 0,
    ...more,
    rules: rules.map((rule, i) => ({
      id: `rule${i}`,
      limit: 3,
      windowMillis: 1_000,
      clock: 'request',
      ...rule,
    })),
  });
}

export function harnessWith(...rules: Partial<Rule>[]): Harness {
  const harness = new Harness();
  harness.rules(tableOf(1, rules));
  return harness;
}

/** The error that `work` throws; undefined if it throws nothing. */
export function thrownBy(work: () => unknown): unknown {
  try {
    work();
    return undefined;
  } catch (error) {
    return error;
  }
}
