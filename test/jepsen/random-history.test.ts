import { describe, expect, it } from 'vitest';
import { NO_FATES } from './checkers/fates.ts';
import { accusers, checkAll } from './judged.ts';
import { randomHistory } from './random-history.ts';
import type { Bug } from './random-leaders.ts';
import { ROUNDS } from '../raft/seeded.ts';

/**
 * The rarest false alarm that was put into a checker showed in the 65th history. Every run draws new good histories.
 */
const GOOD_HISTORIES = 50 * ROUNDS;
/** Every checker has noticed its bugs by the second history. */
const BAD_HISTORIES = 12;
const OPERATIONS = 300;

/** A failure names the seed; this variable replays it alone. */
const REPLAYED = process.env['JEPSEN_SEED'];
const seeds = (first: number, count: number): number[] =>
  REPLAYED === undefined ? Array.from({ length: count }, (_, i) => first + i) : [Number(REPLAYED)];
/** Good histories are new in every run. Bad ones are always the same, because a bug may happen not to show. */
const FIRST_GOOD = Math.floor(Math.random() * 1_000_000_000);
const FIRST_BAD = 1;
const replay = (seed: number): string => `replay with JEPSEN_SEED=${seed}`;

describe('good histories', () => {
  it(`raise no alarm, ${GOOD_HISTORIES} at random, with and without the logs`, () => {
    console.log(`good histories from seed ${FIRST_GOOD} on`);
    let retries = 0;
    let unknowns = 0;
    for (const seed of seeds(FIRST_GOOD, GOOD_HISTORIES)) {
      const isHealthy = seed % 3 === 0;
      const { operations, bands, fates, wrongAnswers } = randomHistory({
        seed,
        operations: OPERATIONS,
        isHealthy,
      });
      expect({ seed, wrongAnswers }).toEqual({ seed, wrongAnswers: 0 });
      for (const known of [NO_FATES, fates]) {
        const results = checkAll(operations, bands, known);
        const alarms = results.filter(({ status }) => status !== 'ok');
        expect({ replay: replay(seed), alarms }).toEqual({ replay: replay(seed), alarms: [] });
        retries += results[1]?.counts['retries'] ?? 0;
        unknowns += results[1]?.counts['unknownOutcomes'] ?? 0;
      }
    }
    // Histories without retries and unknown outcomes would test little.
    expect(Math.min(retries, unknowns)).toBeGreaterThan(REPLAYED === undefined ? 100 : -1);
  });
});

describe('bad histories', () => {
  /**
   * `by`: checkers that must notice the bug in at least some histories. In every bad history at least one checker must
   * notice.
   */
  const cases: readonly { readonly bug: Bug; readonly by: readonly string[] }[] = [
    { bug: 'lostGrants', by: ['real-time', 'certificate', 'linearizability-lenient'] },
    { bug: 'lostGrantsReusedIndexes', by: ['real-time', 'certificate', 'linearizability-lenient'] },
    { bug: 'staleAllow', by: ['real-time', 'certificate', 'linearizability-lenient'] },
    { bug: 'clockAhead', by: ['real-time', 'certificate'] },
    { bug: 'windowShort', by: ['certificate', 'linearizability-lenient'] },
    { bug: 'windowLong', by: ['certificate', 'linearizability-strict'] },
    { bug: 'duplicateApply', by: ['certificate', 'linearizability-strict', 'false-denials'] },
    { bug: 'retryCharged', by: ['certificate'] },
    { bug: 'onePlace', by: ['certificate'] },
  ];

  it.each(cases)('are caught: $bug', ({ bug, by }) => {
    let bad = 0;
    const caughtBy = new Set<string>();
    for (const seed of seeds(FIRST_BAD, BAD_HISTORIES)) {
      const history = randomHistory({ seed, operations: OPERATIONS, isHealthy: false, bug });
      if (history.wrongAnswers === 0) continue;
      bad += 1;
      const results = checkAll(history.operations, [], history.fates);
      const caught = accusers(results);
      expect({ replay: replay(seed), caught: caught.length > 0 }).toEqual({
        replay: replay(seed),
        caught: true,
      });
      for (const name of caught) caughtBy.add(name);
    }
    // A single history need not show everything.
    expect(bad).toBeGreaterThan(REPLAYED === undefined ? 0 : -1);
    expect([...caughtBy]).toEqual(expect.arrayContaining(REPLAYED === undefined ? [...by] : []));
  });
});
