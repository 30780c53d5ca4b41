/**
 * Memory is in proportion to the remembered keys, whichever of them stay or leave, and no answer depends on it.
 */
import { setTimeout } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BlockPool, roomOf, UNIT_BYTES } from '../../src/limiter/state/block-pool.ts';
import { LinearIndex } from '../../src/limiter/state/linear-index.ts';
import { SlidingLogs } from '../../src/limiter/meters/sliding-logs.ts';
import { Rows } from '../../src/limiter/state/rows.ts';
import { StateSize } from '../../src/limiter/state/state-size.ts';
import { chunksOf, Harness, harnessWith, restoreInto, snapshotOf, START, tableOf } from './harness.ts';
import { ROUNDS } from '../raft/seeded.ts';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

/** The bytes of all buffers of this process, once the garbage collector finds nothing more to free. */
async function heldBytes(): Promise<number> {
  for (let before = Infinity; ;) {
    collect();
    await setTimeout(10);
    const held = process.memoryUsage().arrayBuffers;
    if (held >= before) return held;
    before = held;
  }
}

const WINDOW_MILLIS = 60_000;
const SLAB_BYTES = 65_536;
const BATCH = 100;

function sweep(harness: Harness, times: number): void {
  for (let i = 0; i < times; i += 1) harness.machine.apply({ type: 'sweep' }, harness.next());
}

describe('the memory of a state', () => {
  it('does not grow with users that left, if others stay', async () => {
    const CAP = 1_536 << 10;
    const before = await heldBytes();
    const harness = new Harness();
    const rule = { limit: 1_000, windowMillis: WINDOW_MILLIS, clock: 'cluster' } as const;
    harness.rules(tableOf(1, [rule], { partitionBytesMax: CAP }));
    const stayed: string[] = [];
    /** Adds users until the state is full. All names of one round have the same length, and so have the logs. */
    const flood = (nameBytes: number, runs: number): void => {
      const perSlab = Math.floor(SLAB_BYTES / UNIT_BYTES / Math.max(roomOf(nameBytes / 8), roomOf(runs)));
      for (let users = 0; ; users += BATCH) {
        const names = Array.from({ length: BATCH }, (_, i) =>
          `${nameBytes}.${runs}.${users + i}`.padEnd(nameBytes, '.'),
        );
        stayed.push(...names.filter((_, i) => (users + i) % perSlab === 0));
        for (let run = 0; run < runs; run += 1) {
          harness.nowMillis += 1;
          if (harness.ask(...names.map((userId) => ({ userId }))).some(({ allowed }) => !allowed)) return;
        }
      }
    };
    /** All users leave, except those that keep asking. */
    const leave = (): void => {
      for (let i = 0; i < 3; i += 1) {
        harness.nowMillis += WINDOW_MILLIS / 2;
        harness.ask(...stayed.map((userId) => ({ userId })));
        sweep(harness, 20);
      }
    };
    for (const nameBytes of [16, 24, 32, 48, 64, 96, 128, 192, 256]) {
      flood(nameBytes, 1);
      leave();
    }
    for (const runs of [12, 24, 48, 96]) {
      flood(16, runs);
      leave();
    }
    const { keys } = harness.machine.stats();
    expect(keys).toBe(new Set(stayed).size);
    expect(keys).toBeGreaterThan(100);
    expect(harness.machine.stateBytes).toBeLessThan(CAP / 16);
    expect((await heldBytes()) - before).toBeLessThan(harness.machine.stateBytes * 2 + 500_000);
  });

  it('has at most one and a half slabs of each block size unused', () => {
    const sizes = [1, 2, 6, 16, 48, 128];
    const addresses = new Map<number, number>();
    const pool = new BlockPool((owner, address) => addresses.set(owner, address));
    const unitsOf = (owner: number): number => sizes[owner % sizes.length]!;
    for (let owner = 0; owner < 30_000; owner += 1)
      addresses.set(owner, pool.allocate(unitsOf(owner), owner));
    const full = pool.byteLength;
    for (let owner = 0; owner < 30_000; owner += 1) {
      if (Math.floor(owner / sizes.length) % 50 === 0) continue;
      const address = addresses.get(owner)!;
      addresses.delete(owner);
      pool.free(address, unitsOf(owner));
    }
    const inUse = [...addresses.keys()].reduce((sum, owner) => sum + unitsOf(owner) * UNIT_BYTES, 0);
    expect(inUse).toBeLessThan(full / 40);
    // The owner of a block takes memory too.
    const slabBytes = SLAB_BYTES * 1.5;
    expect(pool.byteLength).toBeLessThan(inUse * 1.5 + sizes.length * slabBytes);
    expect(pool.byteLength).toBeLessThan(inUse * 4);
  });

  it('grows by at most eight bytes with a further grant of cost 1', async () => {
    const keys = 5_000;
    const logs = new SlidingLogs(new StateSize());
    for (let slot = 0; slot < keys; slot += 1) logs.add();
    const rule = { id: 'rule', limit: 100, windowMillis: WINDOW_MILLIS, clock: 'cluster' } as const;
    const perGrant: number[] = [];
    let first = 0;
    for (let grants = 1; grants <= 40; grants += 1) {
      const demand = {
        rule,
        t: START + grants,
        cost: 1,
        windowMillis: WINDOW_MILLIS,
        keptMillis: WINDOW_MILLIS,
      };
      for (let slot = 0; slot < keys; slot += 1) logs.grant(slot, demand);
      if (grants === 1) first = await heldBytes();
      else if (grants % 3 === 0) perGrant.push(((await heldBytes()) - first) / (keys * (grants - 1)));
    }
    expect(perGrant.filter((bytes) => bytes > UNIT_BYTES)).toEqual([]);
    expect(perGrant.at(-1)).toBeGreaterThan(3);
    expect(logs.newestMillis(keys - 1)).toBe(START + 40);
  });

  it('has no index buckets for rows that left', async () => {
    const before = await heldBytes();
    const rows = new Rows(2, 64);
    const index = new LinearIndex(rows, { hash: 0, next: 1 });
    for (let i = 0; i < 100_000; i += 1) index.insert(rows.append(), Math.imul(i, 0x9e37_79b1) >>> 0);
    while (rows.size > 1) {
      index.remove(rows.size - 1);
      rows.dropLast();
    }
    expect((await heldBytes()) - before).toBeLessThan(100_000);
    expect(index.size).toBe(1);
  });

  it('may be moved while a snapshot writes a log: the snapshot continues with the moved log', () => {
    const harness = harnessWith({ limit: 700, windowMillis: 10_000 });
    const ask = (userId: string, times: number, gapMillis = 1): void => {
      for (let i = 0; i < times; i += 1) {
        harness.nowMillis += gapMillis;
        expect(harness.allows(userId)).toBe(true);
      }
    };
    // Blocks of one size; the last one is that of the log being shown.
    ask('shown', 1);
    ask('leaves', 700);
    harness.nowMillis += 1_000;
    for (const userId of ['stays', 'stays too', 'stays as well']) ask(userId, 700);
    ask('shown', 699);
    const expected = snapshotOf(harness.machine);
    const snapshot = harness.machine.snapshot();
    const chunks = [snapshot.next()!];
    harness.nowMillis = START + 11_000;
    sweep(harness, 1);
    expect(harness.machine.stats()).toMatchObject({ keys: 4 });
    // This takes the former place of the log.
    ask('new', 700, 2);
    expect([...chunks, ...chunksOf(snapshot)]).toEqual(expected);
  });

  it('does not affect results: replicas with another memory layout give the same answers and snapshots', () => {
    const step = fc.record({
      gap: fc.constantFrom(0, 1, 7, 400, 1_500),
      user: fc.nat(60),
      times: fc.integer({ min: 1, max: 12 }),
      hasId: fc.boolean(),
      event: fc.constantFrom('none', 'none', 'none', 'restored', 'snapshot', 'chunk'),
    });
    fc.assert(
      fc.property(fc.array(step, { minLength: 20, maxLength: 150 }), (steps) => {
        const rules = [{ limit: 40, windowMillis: 1_000, clock: 'cluster' } as const];
        const twins = [new Harness(), new Harness()];
        for (const twin of twins) twin.rules(tableOf(1, rules, { requestIdHorizonMillis: 2_000 }));
        const [plain, moved] = twins as [Harness, Harness];
        const written: { readonly chunks: Uint8Array[]; readonly expected: Uint8Array[] }[] = [];
        let begun: { readonly rest: () => Uint8Array[]; readonly expected: Uint8Array[] } | undefined;
        for (const [i, { gap, user, times, hasId, event }] of steps.entries()) {
          // One run reallocates everything, or writes a snapshot in between.
          if (event === 'restored') {
            restoreInto(moved.machine, snapshotOf(moved.machine));
            begun = undefined;
          } else if (event === 'snapshot') {
            const expected = snapshotOf(plain.machine);
            const snapshot = moved.machine.snapshot();
            const first = snapshot.next()!;
            begun = { expected, rest: () => [first, ...chunksOf(snapshot)] };
          } else if (event === 'chunk' && begun !== undefined) {
            written.push({ chunks: begun.rest(), expected: begun.expected });
            begun = undefined;
          }
          const userId = `${'n'.repeat((user * 7) % 90)}${user}`;
          const answers = twins.map((twin) => {
            const decisions = [];
            for (let k = 0; k < times; k += 1) {
              twin.nowMillis += k === 0 ? gap : 1;
              decisions.push(
                twin.one({ userId, ...(hasId && { requestId: `${'i'.repeat(i % 50)}${i}.${k}` }) }),
              );
            }
            return decisions;
          });
          expect(answers[1]).toEqual(answers[0]);
        }
        for (const { chunks, expected } of written) expect(chunks).toEqual(expected);
        expect(moved.machine.hash()).toBe(plain.machine.hash());
        expect(snapshotOf(moved.machine)).toEqual(snapshotOf(plain.machine));
      }),
      { numRuns: 15 * ROUNDS },
    );
  });
});
