/**
 * Random histories: grants of a partition before and after a backup, to keys that the backup knows and to others.
 * The restored group, together with the history before, never grants more than the limit in one window: in real
 * time for the cluster's clock, in the callers' time for theirs. It never repeats a grant from before, which may be
 * refunded.
 *
 * Repeat a history with `RAFT_SEED=n npx vitest run test/backup/random-histories.test.ts`.
 */
import assert from 'node:assert/strict';
import { describe, expect, it } from 'vitest';
import type { BackedUpGroup } from '../../src/backup/manifest.ts';
import { fillGroup } from '../../src/backup/restore-founder.ts';
import { decodeCommand, encodeHistoryBegins } from '../../src/limiter/log/command.ts';
import type { Decision } from '../../src/limiter/decision.ts';
import type { RandomBelow } from '../../raft/core-state.ts';
import { MemoryStore } from '../../storage/memory-store.ts';
import { Harness, harnessWith, snapshotOf, START, tableOf } from '../limiter/harness.ts';
import { eachSeed, ROUNDS, seeded } from '../raft/seeded.ts';

const WINDOW_MILLIS = 1_000;
const LIMIT = 3;
const BURST = 6;
const AHEAD_MILLIS = 60_000;
const RULES = [
  { id: 'log', limit: LIMIT, clock: 'cluster' },
  { id: 'bucket', limit: LIMIT, meter: 'tokenBucket', burst: BURST, clock: 'cluster' },
  { id: 'event', limit: LIMIT, clock: 'request' },
] as const;
const GROUP = 1;

interface Grant {
  readonly realMillis: number;
  /** The time at which it was judged. */
  readonly timeMillis: number;
  readonly cost: number;
}

class History {
  readonly #random: RandomBelow;
  readonly granted = new Map<string, Grant[]>();
  realMillis = 0;
  refunded = 0;

  constructor(random: RandomBelow) {
    this.#random = random;
  }

  get wallMillis(): number {
    return START + this.realMillis;
  }

  /** One request or refund of one of a few users. `sinceIndex`: no grant from before may be repeated. */
  step(harness: Harness, users: readonly string[], sinceIndex: number): void {
    const random = this.#random;
    const userId = users[random(users.length)]!;
    const requestId = random(3) === 0 ? `r${random(8)}` : undefined;
    const { id: ruleId } = RULES[random(RULES.length)]!;
    if (requestId !== undefined && random(4) === 0) {
      const { refund } = harness.one({ ask: 'refund', userId, requestId });
      this.refunded += refund?.refunded === true ? 1 : 0;
      this.#forget(userId, harness, requestId);
      return;
    }
    const isEvent = ruleId === 'event' && random(4) > 0;
    const timestampMillis = isEvent ? this.wallMillis - 500 + random(AHEAD_MILLIS) : undefined;
    // Requests without timestamps are judged in real time, because the group times of two clusters differ.
    const key = `${isEvent ? 'stamped' : ruleId} ${userId}`;
    const cost = 1 + random(2);
    const decision = harness.one({ userId, requestId, ruleId, cost, timestampMillis });
    if (!decision.allowed) return;
    assert(decision.decided.index > sinceIndex, 'an earlier grant was repeated');
    const isRepeated = decision.decided.index < harness.index;
    if (isRepeated) return;
    const { timeMillis } = decision.decided;
    const reported = this.granted.get(key) ?? [];
    this.granted.set(key, [...reported, { realMillis: this.realMillis, timeMillis, cost }]);
    if (requestId !== undefined) this.#ids.set(`${userId} ${requestId}`, { key, decision });
  }

  readonly #ids = new Map<string, { readonly key: string; readonly decision: Decision }>();

  /** A refunded grant does not count any more, in the old and the new cluster. */
  #forget(userId: string, harness: Harness, requestId: string): void {
    const known = this.#ids.get(`${userId} ${requestId}`);
    if (known === undefined || known.decision.decided.index > harness.index) return;
    const { key, decision } = known;
    const grants = this.granted.get(key) ?? [];
    const at = grants.findIndex(({ timeMillis }) => timeMillis === decision.decided.timeMillis);
    if (at !== -1) grants.splice(at, 1);
    this.#ids.delete(`${userId} ${requestId}`);
  }

  /** Checks all grants against the definition of each rule. */
  check(): void {
    for (const [key, grants] of this.granted) {
      const time = key.startsWith('stamped') ? 'timeMillis' : 'realMillis';
      const sorted = [...grants].sort((a, b) => a[time] - b[time]);
      for (const [first, { [time]: from }] of sorted.entries()) {
        let cost = 0;
        for (const grant of sorted.slice(first)) {
          cost += grant.cost;
          const elapsedMillis = grant[time] - from;
          const flow = BURST + 1 + (elapsedMillis * LIMIT) / WINDOW_MILLIS;
          const most = key.startsWith('bucket') ? flow : elapsedMillis < WINDOW_MILLIS ? LIMIT : Infinity;
          assert(cost <= most, `${key}: ${cost} within ${elapsedMillis} ms`);
        }
      }
    }
  }
}

/** The group as a node of the new cluster reads it from its disk. */
async function restored(old: Harness, isComplete: boolean): Promise<Harness> {
  const chunks = snapshotOf(old.machine);
  const entry: BackedUpGroup = {
    ...old.machine.applied,
    group: GROUP,
    file: '',
    sha256: '',
    stateHash: '',
    fileBytes: 0,
    chunkCount: chunks.length,
    byteLength: chunks.reduce((sum, { length }) => sum + length, 0),
  };
  const store = new MemoryStore({ schedule: (write) => queueMicrotask(write) });
  const stream = (async function* () {
    yield* chunks;
  })();
  await fillGroup(store, { entry, voters: [1, 2, 3], chunks: stream, laterRules: undefined, isComplete });
  const stored = await store.load(GROUP);
  const harness = new Harness();
  const restore = harness.machine.restore();
  for (let chunk = 0; chunk < (stored?.snapshot?.chunkCount ?? 0); chunk += 1)
    restore.add((await store.readSnapshotChunk(GROUP, old.index, chunk)) ?? new Uint8Array());
  restore.complete();
  restore.install();
  expect(harness.machine.hash()).toBe(old.machine.hash());
  expect(stored?.hardState.commit).toBe(old.index + (isComplete ? 0 : 1));
  for (const each of stored?.entries ?? []) harness.machine.apply(decodeCommand(each.data), each);
  harness.index = stored?.hardState.commit ?? 0;
  leadIn(harness, (stored?.hardState.term ?? 0) + 1);
  // A restarted process continues from the last timestamp in its log.
  harness.nowMillis = stored?.entries.at(-1)?.timeMillis ?? stored?.snapshot?.timeMillis ?? 0;
  expect(harness.nowMillis).toBe(old.machine.applied.timeMillis);
  return harness;
}

/** All further entries are of this term. */
function leadIn(harness: Harness, term: number): void {
  harness.next = () => {
    harness.index += 1;
    return { index: harness.index, term, timeMillis: harness.nowMillis };
  };
}

function copyOf(old: Harness): Harness {
  const copy = new Harness();
  const restore = copy.machine.restore();
  for (const chunk of snapshotOf(old.machine)) restore.add(chunk);
  restore.complete();
  restore.install();
  copy.index = old.index;
  copy.nowMillis = old.nowMillis;
  return copy;
}

describe('a group that begins with a backup', () => {
  const seeds = Array.from({ length: 60 * ROUNDS }, (_, i) => i + 1);

  it('grants no key too much together with the history before, including grants after the backup', async () => {
    let later = 0;
    await eachSeed(seeds, async (seed) => {
      const random = seeded(seed);
      const history = new History(random);
      const old = harnessWith(...RULES);
      const users = ['ada', 'grace', 'barbara'];
      const pass = (harness: Harness, steps: number, sinceIndex = 0): void => {
        for (let i = 0; i < steps; i += 1) {
          const millis = random(10) === 0 ? random(1_500) : random(60);
          history.realMillis += millis;
          harness.nowMillis += millis;
          history.step(harness, users, sinceIndex);
        }
      };
      pass(old, random(40));
      const backup = copyOf(old);
      users.push('new', 'newer');
      pass(old, random(60));
      const fresh = await restored(backup, false);
      const { index } = fresh;
      history.realMillis += random(2) * random(3_000);
      // Requests also come before a leader has said that the group runs.
      pass(fresh, random(5), index);
      fresh.machine.apply(decodeCommand(encodeHistoryBegins(history.wallMillis)), fresh.next());
      const before = [...history.granted.values()].flat().length;
      pass(fresh, 150, index);
      // Far enough ahead for timestamps of callers.
      history.realMillis += 200_000;
      fresh.nowMillis += 200_000;
      pass(fresh, 60, index);
      history.check();
      later += [...history.granted.values()].flat().length - before;
    });
    expect(later).toBeGreaterThan(seeds.length);
  });

  it('decides as the old group would have, if no entry is missing', async () => {
    await eachSeed(seeds.slice(0, 20), async (seed) => {
      const random = seeded(seed);
      const old = harnessWith(...RULES);
      const history = new History(random);
      for (let i = 0; i < 60; i += 1) {
        old.nowMillis += random(60);
        history.step(old, ['ada', 'grace'], 0);
      }
      const fresh = await restored(copyOf(old), true);
      fresh.nowMillis = old.nowMillis;
      leadIn(old, old.machine.applied.term + 1);
      for (let i = 0; i < 60; i += 1) {
        const millis = random(60);
        old.nowMillis += millis;
        fresh.nowMillis += millis;
        const request = { userId: ['ada', 'grace'][random(2)]!, requestId: `r${random(9)}`, ruleId: 'log' };
        expect(fresh.one(request)).toEqual(old.one(request));
      }
      expect(fresh.machine.hash()).toBe(old.machine.hash());
    });
  });

  it('denies under newer rules with longer windows for as long as these windows last', async () => {
    const old = harnessWith(RULES[0]);
    const fresh = await restored(old, false);
    fresh.machine.apply(decodeCommand(encodeHistoryBegins(fresh.nowMillis)), fresh.next());
    fresh.nowMillis += 1_500;
    expect(fresh.one({ userId: 'ada' }).allowed).toBe(true);
    fresh.rules(tableOf(2, [{ ...RULES[0], windowMillis: 4_000 }]));
    expect(fresh.one({ userId: 'ada' }).allowed).toBe(false);
    fresh.nowMillis += 2_501;
    expect(fresh.one({ userId: 'ada' }).allowed).toBe(true);
  });
});
