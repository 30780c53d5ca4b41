/** The comparison with one other clock finds every difference above the limit in time, and reports no false ones. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Difference, PeerClock, type RoundTrip } from '../../src/clock/peer-clock.ts';
import { clocksAt, roundTrip } from './round-trips.ts';

const LIMIT_PPM = 500;

/**
 * One round trip a second, of these durations in turn. Returns the differences that were found, with their real times.
 */
function watch(
  rates: readonly [number, number],
  seconds: number,
  delays: (i: number) => readonly [number, number] = () => [0.2, 0.2],
): { atMillis: number; found: Difference }[] {
  const clock = new PeerClock();
  const clocks = clocksAt(...rates);
  const differences: { atMillis: number; found: Difference }[] = [];
  for (let i = 0; i < seconds; i += 1) {
    const [there, back] = delays(i);
    const found = clock.add(roundTrip(clocks, i * 1_000, there, back), LIMIT_PPM);
    if (found !== undefined) differences.push({ atMillis: i * 1_000 + there + back, found });
  }
  return differences;
}

const delay = fc.oneof(
  fc.double({ min: 0, max: 2, noNaN: true }),
  fc.double({ min: 0, max: 5_000, noNaN: true }),
);

const realTime = (real: number): number => real;

describe('a clock compared with another one', () => {
  it('is never found wrong while they differ by no more than the limit, for any delays of the network', () => {
    const rate = fc.double({ min: 1, max: 1 + LIMIT_PPM / 1e6, noNaN: true });
    fc.assert(
      fc.property(
        fc.boolean(),
        // Sections with different speeds, and the round trips in each: their starts, and the durations of both ways.
        fc.array(fc.tuple(rate, fc.double({ min: 1, max: 60_000, noNaN: true })), {
          minLength: 1,
          maxLength: 6,
        }),
        fc.array(fc.tuple(fc.double({ min: 0, max: 200_000, noNaN: true }), delay, delay), { maxLength: 60 }),
        (isOwn, stretches, trips) => {
          const varying = (real: number): number => {
            let [reading, left] = [0, real];
            for (const [speed, lasts] of stretches) {
              const part = Math.min(left, lasts);
              reading += part * speed;
              left -= part;
            }
            return reading + left;
          };
          const clocks = isOwn ? { own: varying, peer: realTime } : { own: realTime, peer: varying };
          // In the order in which the answers arrive, which may not be that of the questions.
          const arrived = trips.toSorted((a, b) => a[0] + a[1] + a[2] - (b[0] + b[1] + b[2]));
          const clock = new PeerClock();
          for (const [at, there, back] of arrived) {
            expect(clock.add(roundTrip(clocks, at, there, back), LIMIT_PPM)).toBeUndefined();
          }
        },
      ),
      { seed: 1, numRuns: 2_000 },
    );
  });

  it.each([
    [1.05, 'fast', 2_000],
    [2, 'fast', 2_000],
    [1.005, 'fast', 2_000],
    [1.001, 'fast', 3_000],
    // One ppm beyond the limit: 0.4 ms and 0.4 ms of round trips take 800 s.
    [1.000_501, 'fast', 802_000],
    [0.95, 'slow', 2_000],
    [0.5, 'slow', 2_000],
    [0.999, 'slow', 3_000],
  ] as const)(
    'that runs at %d of its speed is found to be %s within %d ms',
    (rate, direction, withinMillis) => {
      const [first] = watch([rate, 1], 900);
      expect(first?.found.direction).toBe(direction);
      expect(first?.atMillis).toBeLessThanOrEqual(withinMillis);
      const differPpm = Math.abs((direction === 'fast' ? rate : 1 / rate) - 1) * 1e6;
      expect(first?.found.atLeastPpm).toBeGreaterThan(LIMIT_PPM);
      expect(first?.found.atLeastPpm).toBeLessThan(differPpm);
    },
  );

  it('gains, while nothing is found, no more between two round trips than the duration of both', () => {
    fc.assert(
      fc.property(
        fc.double({ min: LIMIT_PPM, max: 100_000, noNaN: true }),
        fc.array(fc.tuple(delay, delay), { minLength: 2, maxLength: 60 }),
        // The clock runs well for this time.
        fc.integer({ min: 0, max: 30_000 }),
        (ppm, delays, wellMillis) => {
          const own = (real: number): number => real + (Math.max(0, real - wellMillis) * ppm) / 1e6;
          const clocks = { own, peer: realTime };
          const clock = new PeerClock();
          const passed: RoundTrip[] = [];
          for (const [i, [there, back]] of delays.entries()) {
            const trip = roundTrip(clocks, i * 1_000, there, back);
            if (clock.add(trip, LIMIT_PPM) !== undefined) return;
            if (trip.peerMillis <= (passed.at(-1)?.peerMillis ?? -1)) continue;
            for (const before of passed) {
              const elapsed = trip.peerMillis - before.peerMillis;
              const gained = own(trip.peerMillis) - own(before.peerMillis) - elapsed * (1 + LIMIT_PPM / 1e6);
              const took = trip.receivedMillis - trip.sentMillis + before.receivedMillis - before.sentMillis;
              expect(gained).toBeLessThanOrEqual(took + 0.01);
            }
            passed.push(trip);
          }
        },
      ),
      { seed: 1, numRuns: 1_000 },
    );
  });

  it.each([0.99, 0.9995, 1, 1.0004])(
    'is found just as soon after it ran at %d of its speed for an hour',
    (before) => {
      const clock = new PeerClock();
      const own = (real: number): number =>
        real < 3_600_000 ? real * before : 3_600_000 * before + (real - 3_600_000) * 1.01;
      const clocks = { own, peer: realTime };
      let foundMillis = Infinity;
      for (let at = 0; at < 3_700_000 && foundMillis === Infinity; at += 1_000) {
        const found = clock.add(roundTrip(clocks, at, 0.2, 0.2), LIMIT_PPM);
        if (found?.direction === 'fast') foundMillis = at;
      }
      expect(foundMillis - 3_600_000).toBeLessThanOrEqual(2_000);
      expect(foundMillis).toBeGreaterThan(3_600_000);
    },
  );

  it('is found again while the difference lasts, and is forgotten only a good while later', () => {
    const found = watch([1.05, 1], 100);
    const again = found.slice(1).map(({ atMillis }, i) => atMillis - (found[i]?.atMillis ?? 0));
    expect(Math.max(...again)).toBeLessThan(5_000);
    for (const { atMillis, found: one } of found) {
      // Times of the fast clock.
      expect((one.forgottenMillis - 1e9) / 1.05 - atMillis).toBeGreaterThan(25_000);
    }
  });

  it('counts as wrong for twice as long as it took to find out, but not forever', () => {
    const [slight] = watch([1.000_505, 1], 900);
    expect(slight?.atMillis).toBeGreaterThan(30_000);
    const countsMillis = (slight?.found.forgottenMillis ?? 0) - 1e9 - (slight?.atMillis ?? 0);
    expect(countsMillis).toBeGreaterThan(2 * (slight?.atMillis ?? 0) - 5_000);
    const clock = new PeerClock();
    // The machine of the peer slept for a night.
    const clocks = {
      own: (real: number): number => real,
      peer: (real: number): number => Math.min(real, 1_000),
    };
    clock.add(roundTrip(clocks, 0, 1, 1), LIMIT_PPM);
    const night = clock.add(
      { sentMillis: 36_000_000, peerMillis: 1_500, receivedMillis: 36_000_002 },
      LIMIT_PPM,
    );
    expect(night?.direction).toBe('fast');
    expect((night?.forgottenMillis ?? 0) - 36_000_002).toBe(600_000);
  });

  it('is estimated over the last minute', () => {
    const clock = new PeerClock();
    const clocks = clocksAt(1.000_3, 1);
    expect(clock.estimatePpm).toBeUndefined();
    for (let i = 0; i < 300; i += 1) {
      clock.add(roundTrip(clocks, i * 1_000, i % 7 === 0 ? 0.1 : 50, 0.2), LIMIT_PPM);
    }
    expect(clock.estimatePpm).toBeGreaterThan(290);
    expect(clock.estimatePpm).toBeLessThan(310);
  });
});
