/** The memory structures of a state, compared with plain maps and arrays. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BlockPool, roomOf, UNIT_BYTES, wordOf } from '../../src/limiter/state/block-pool.ts';
import { Keys } from '../../src/limiter/state/keys.ts';
import { LinearIndex } from '../../src/limiter/state/linear-index.ts';
import { NONE, Rows } from '../../src/limiter/state/rows.ts';
import { StateSize } from '../../src/limiter/state/state-size.ts';
import { TextBytes } from '../../src/limiter/state/text-bytes.ts';

describe('rows', () => {
  it('keep their contents when rows are dropped from either end', () => {
    const steps = fc.array(fc.constantFrom('append', 'append', 'append', 'dropFirst', 'dropLast'), {
      maxLength: 400,
    });
    fc.assert(
      fc.property(steps, fc.constantFrom(8, 16), (asked, perSegment) => {
        const rows = new Rows(2, perSegment);
        const model: { id: number; value: number }[] = [];
        for (const [value, step] of asked.entries()) {
          if (step === 'append') {
            const id = rows.append();
            rows.doubles(id)[rows.at(id) >>> 1] = value;
            model.push({ id, value });
          } else if (model.length > 0) {
            if (step === 'dropFirst') {
              rows.dropFirst();
              model.shift();
            } else {
              rows.dropLast();
              model.pop();
            }
          }
          expect(rows.size).toBe(model.length);
          expect(model[0]?.id ?? rows.first).toBe(rows.first);
        }
        for (const { id, value } of model) expect(rows.doubles(id)[rows.at(id) >>> 1]).toBe(value);
      }),
    );
  });

  it('have ids that wrap around and never equal NONE, so that a long queue loses no row', () => {
    const firstId = 2 ** 31 - 50;
    const rows = new Rows(2, 16, firstId);
    const index = new LinearIndex(rows, { hash: 0, next: 1 });
    const queue: number[] = [];
    for (let i = 0; i < 200; i += 1) {
      const id = rows.append();
      expect(id).toBe((firstId + i) % 2 ** 31);
      index.insert(id, i % 7);
      queue.push(id);
      if (queue.length > 30) {
        index.remove(rows.first);
        rows.dropFirst();
        queue.shift();
      }
      expect(rows.first).toBe(queue[0]);
      const found: number[] = [];
      for (let hash = 0; hash < 7; hash += 1) {
        for (let row = index.first(hash); row !== NONE; row = index.after(row, hash)) found.push(row);
      }
      expect(new Set(found)).toEqual(new Set(queue));
      expect(rows.size).toBe(queue.length);
    }
  });
});

describe('a block pool', () => {
  it('allocates blocks that do not overlap, and holds little when all are freed', () => {
    const step = fc.record({ units: fc.integer({ min: 1, max: 40 }), at: fc.nat() });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 500 }), (steps) => {
        const held = new Map<number, { address: number; units: number }>();
        const pool = new BlockPool((owner, address) => {
          held.get(owner)!.address = address;
        });
        const check = (owner: number): void => {
          const { address, units } = held.get(owner)!;
          const words = pool.words(address).subarray(wordOf(address), wordOf(address) + units * 2);
          expect(words.every((word) => word === owner)).toBe(true);
        };
        const giveBack = (owner: number): void => {
          check(owner);
          const { address, units } = held.get(owner)!;
          held.delete(owner);
          pool.free(address, units);
        };
        for (const [owner, { units, at }] of steps.entries()) {
          if (at % 3 === 0 && held.size > 0) {
            giveBack([...held.keys()][at % held.size]!);
            continue;
          }
          const address = pool.allocate(units, owner);
          pool.words(address).fill(owner, wordOf(address), wordOf(address) + roomOf(units) * 2);
          held.set(owner, { address, units });
        }
        for (const owner of held.keys()) check(owner);
        for (const owner of held.keys()) giveBack(owner);
        expect(pool.byteLength).toBe(0);
      }),
      { numRuns: 60 },
    );
  });

  it('reuses slabs for blocks of another size, and keeps no spare slab when it is small', () => {
    const owners = 40_000;
    const addresses = new Uint32Array(owners);
    const pool = new BlockPool((owner, address) => {
      addresses[owner] = address;
    });
    const buffers = new Set<ArrayBufferLike>();
    const sizes = [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24];
    for (const [step, units] of sizes.entries()) {
      for (let owner = 0; owner < owners; owner += 1) {
        const former = addresses[owner]!;
        addresses[owner] = pool.allocate(units, owner);
        buffers.add(pool.words(addresses[owner]!).buffer);
        if (step > 0) pool.free(former, sizes[step - 1]!);
      }
    }
    const inUse = owners * 24 * UNIT_BYTES;
    const everHeld = [...buffers].reduce((sum, { byteLength }) => sum + byteLength, 0);
    expect(pool.byteLength).toBeLessThan(inUse * 1.1);
    expect(everHeld).toBeLessThan(inUse * 1.5);
    for (const owner of addresses.keys()) pool.free(addresses[owner]!, 24);
    expect(pool.byteLength).toBe(0);
  });

  it('allocates at most a quarter more than requested, up to the largest log', () => {
    for (let units = 1; units < 2_000_000; units = Math.ceil(units * 1.07)) {
      expect(roomOf(units)).toBeGreaterThanOrEqual(units);
      expect(roomOf(units)).toBeLessThanOrEqual(units * 1.25);
      expect(roomOf(roomOf(units))).toBe(roomOf(units));
    }
    const pool = new BlockPool(() => expect.unreachable('there is no block to move'));
    const address = pool.allocate(1_000_000, 0);
    expect(pool.words(address).length - wordOf(address)).toBeGreaterThanOrEqual(2_000_000);
    pool.free(address, 1_000_000);
    expect(pool.byteLength).toBe(0);
  });
});

describe('an index', () => {
  it('finds rows of one hash among others, while it grows and shrinks', () => {
    const step = fc.record({ hash: fc.integer({ min: 0, max: 60 }), isRemoval: fc.boolean() });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 300 }), fc.constantFrom(1, 0x0101_0101), (steps, spread) => {
        const rows = new Rows(2, 64);
        const index = new LinearIndex(rows, { hash: 0, next: 1 });
        const model = new Map<number, number>();
        for (const { hash, isRemoval } of steps) {
          if (isRemoval && rows.size > 0) {
            const removed = hash % rows.size;
            const last = rows.size - 1;
            index.remove(removed);
            model.set(removed, model.get(last)!);
            model.delete(last);
            if (removed !== last) {
              rows.copy(last, removed);
              index.moved(last, removed);
            }
            rows.dropLast();
          } else {
            const row = rows.append();
            index.insert(row, Math.imul(hash, spread) >>> 0);
            model.set(row, Math.imul(hash, spread) >>> 0);
          }
          expect(index.size).toBe(model.size);
        }
        for (let hash = 0; hash <= 61; hash += 1) {
          const wanted = Math.imul(hash, spread) >>> 0;
          const found: number[] = [];
          for (let row = index.first(wanted); row !== NONE; row = index.after(row, wanted)) found.push(row);
          const expected = [...model].filter(([, other]) => other === wanted).map(([row]) => row);
          expect(found.sort((a, b) => a - b)).toEqual(expected.sort((a, b) => a - b));
        }
      }),
    );
  });
});

describe('keys', () => {
  it('are found by their full name and no other, also after removals', () => {
    const name = fc.oneof(
      fc.string({ minLength: 1, maxLength: 3, unit: fc.constantFrom('a', 'b', 'ä', '\0') }),
      fc.string({ minLength: 1, maxLength: 80, unit: 'binary' }),
      fc.constantFrom('x'.repeat(256), 'x'.repeat(255), 'é'.repeat(128)),
    );
    fc.assert(
      fc.property(fc.array(fc.tuple(name, fc.nat()), { maxLength: 200 }), (steps) => {
        const size = new StateSize();
        const keys = new Keys(size);
        const text = new TextBytes(12_345_678_901_234);
        const order: string[] = [];
        for (const [user, at] of steps) {
          text.set(user);
          const slot = keys.find(text);
          expect(slot).toBe(order.includes(user) ? order.indexOf(user) : NONE);
          if (slot === NONE) {
            keys.add(text, at);
            order.push(user);
          }
          if (at % 3 !== 0 || order.length === 0) continue;
          const removed = at % order.length;
          keys.remove(removed);
          const last = order.pop()!;
          if (removed < order.length) order[removed] = last;
        }
        const bytes = order.map((user) => Buffer.byteLength(user)).reduce((sum, length) => sum + length, 0);
        expect(size).toMatchObject({ keys: order.length, keyTextBytes: bytes });
        for (const [slot, user] of order.entries()) {
          text.set(user);
          expect(keys.find(text)).toBe(slot);
        }
      }),
    );
  });
});

function hashOf(text: string, seed: number): number {
  const bytes = new TextBytes(seed);
  bytes.set(text);
  return bytes.hash;
}

describe('the hash of a text', () => {
  it('depends on the seed and on every byte', () => {
    const texts = ['a', 'b', 'aa', 'a\0', 'ab', 'ba', 'abcd', 'abcde', 'abcdf', 'user-1', 'user-2'];
    const hashes = [1, 2, 2 ** 40].flatMap((seed) => texts.map((text) => hashOf(text, seed)));
    expect(new Set(hashes).size).toBe(hashes.length);
    expect(hashOf('user-1', 7)).toBe(hashOf('user-1', 7));
    // Every bit is set about half of the time, so buckets fill evenly.
    const counts = Array.from({ length: 32 }, () => 0);
    for (let i = 0; i < 4_000; i += 1) {
      const hash = hashOf(`user-${i}`, 99);
      for (let bit = 0; bit < 32; bit += 1) counts[bit]! += (hash >>> bit) & 1;
    }
    for (const count of counts) expect(Math.abs(count - 2_000)).toBeLessThan(200);
  });
});
