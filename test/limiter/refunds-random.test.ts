/** Random grants, refunds, retries and snapshots on replicas, compared with a list of grants. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { BatchedRequest } from '../../src/api/user-request.ts';
import type { AppliedPosition, Decision } from '../../src/limiter/decision.ts';
import { decodeCommand, encodeSweep } from '../../src/limiter/log/command.ts';
import type { LimiterStateMachine } from '../../src/limiter/state-machine.ts';
import type { StateSnapshot } from '../../src/limiter/state/state-writer.ts';
import { chunksOf, entryOf, Harness, restoreInto, tableOf } from './harness.ts';
import { NaiveRefunds } from './naive-refunds.ts';
import { ROUNDS } from '../raft/seeded.ts';

const USERS = ['ada', 'bob'];
const IDS = ['r1', 'r2', 'r3', 'r4', 'r5', 'r6'];
const WINDOW_MILLIS = 300;
const HORIZON_MILLIS = 1_000;
const LIMIT = 6;

const user = fc.constantFrom(...USERS);
const id = fc.constantFrom(...IDS);
const step = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({ what: fc.constant('allow'), user, id, cost: fc.integer({ min: 1, max: 3 }) }),
  },
  { weight: 2, arbitrary: fc.record({ what: fc.constant('anonymous'), user }) },
  { weight: 4, arbitrary: fc.record({ what: fc.constant('refund'), user, id }) },
  {
    weight: 3,
    arbitrary: fc.record({
      what: fc.constant('wait'),
      millis: fc.constantFrom(1, 1, 50, 300, 301, 999, 1_001),
    }),
  },
  { weight: 2, arbitrary: fc.record({ what: fc.constantFrom('sweep', 'snapshot', 'restore') }) },
);
interface Step {
  readonly what: string;
  readonly user?: string;
  readonly id?: string;
  readonly cost?: number;
  readonly millis?: number;
}

interface Logged {
  readonly data: Uint8Array;
  readonly position: AppliedPosition;
}

class Replicas {
  readonly #leader = new Harness();
  /** A replica that may have started from a snapshot. */
  #follower: LimiterStateMachine = new Harness().machine;
  readonly #naive = new NaiveRefunds(LIMIT, WINDOW_MILLIS + 1, HORIZON_MILLIS);
  readonly #log: Logged[] = [];
  #snapshot: { readonly source: StateSnapshot; readonly hash: string; readonly length: number } | undefined;

  constructor() {
    const rule = { limit: LIMIT, windowMillis: WINDOW_MILLIS, clock: 'cluster' } as const;
    const table = tableOf(1, [rule], { requestIdHorizonMillis: HORIZON_MILLIS });
    const other = new Harness();
    for (const harness of [this.#leader, other]) harness.rules(table);
    this.#follower = other.machine;
  }

  run({ what, user: userId = '', id: requestId = '', cost = 1, millis = 0 }: Step): void {
    const now = this.#leader.nowMillis;
    switch (what) {
      case 'allow':
        expectSame(
          this.#decide({ userId, requestId, cost }),
          this.#naive.allow(userId, requestId, cost, now),
        );
        return;
      case 'anonymous':
        expectSame(this.#decide({ userId }), this.#naive.allow(userId, undefined, 1, now));
        return;
      case 'refund':
        expectSame(
          this.#decide({ ask: 'refund', userId, requestId }),
          `refund ${this.#naive.refund(userId, requestId, now)}`,
        );
        return;
      case 'wait':
        this.#leader.nowMillis += millis;
        return;
      case 'sweep':
        this.#apply(encodeSweep());
        return;
      case 'snapshot': {
        const { machine } = this.#leader;
        this.#snapshot = { source: machine.snapshot(), hash: machine.hash(), length: this.#log.length };
        return;
      }
      default:
        this.#restore();
    }
  }

  #decide(request: BatchedRequest): string {
    return wordsOf(this.#apply(entryOf([request]))!);
  }

  #apply(data: Uint8Array): Decision | undefined {
    const position = this.#leader.next();
    let reported: Decision | undefined;
    this.#leader.machine.apply(decodeCommand(data), position, (_, decision) => {
      reported = decision;
    });
    this.#follower.apply(decodeCommand(data), position);
    this.#log.push({ data, position });
    return reported;
  }

  /** The follower restarts from the last snapshot, and applies the entries since then. */
  #restore(): void {
    if (this.#snapshot === undefined) return;
    const { source, hash, length } = this.#snapshot;
    this.#snapshot = undefined;
    const { machine } = new Harness();
    restoreInto(machine, chunksOf(source));
    expectSame(machine.hash(), hash);
    for (const { data, position } of this.#log.slice(length)) machine.apply(decodeCommand(data), position);
    this.#follower = machine;
  }

  check(): void {
    const { machine, nowMillis } = this.#leader;
    for (const userId of USERS) {
      const [limit] = machine.peek({ ask: 'peek', userId }, nowMillis)?.limits ?? [];
      const spent = this.#naive.spent(userId, nowMillis);
      expectSame(spent <= LIMIT, true);
      expectSame(
        [limit?.remaining, limit?.resetMillis],
        [LIMIT - spent, this.#naive.resetMillis(userId, nowMillis)],
      );
    }
    expectSame(this.#follower.hash(), machine.hash());
  }
}

function expectSame(found: unknown, expected: unknown): void {
  expect(found).toEqual(expected);
}

function wordsOf({ allowed, refusal, refund, decided }: Decision): string {
  if (refund !== undefined) return `refund ${refund.refunded}`;
  return allowed ? `granted at ${decided.timeMillis}` : (refusal ?? 'denied');
}

describe('refunds at random', () => {
  it('match a list of grants, and never exceed the limit', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const replicas = new Replicas();
        for (const each of steps) {
          replicas.run(each);
          replicas.check();
        }
      }),
      { seed: 21, numRuns: 150 * ROUNDS },
    );
  });
});
