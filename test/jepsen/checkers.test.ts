import { describe, expect, it } from 'vitest';
import { budgetsOf } from './checkers/budgets.ts';
import { checkCertificate } from './checkers/certificate.ts';
import { checkFalseDenials } from './checkers/false-denials.ts';
import { type Fates, NO_FATES } from './checkers/fates.ts';
import { checkLinearizability } from './checkers/linearizability.ts';
import { checkRealTime } from './checkers/real-time.ts';
import { checkRefusals, MALFORMED_USER } from './checkers/refusals.ts';
import type { CheckResult } from './checkers/result.ts';
import type { Operation } from './history.ts';
import type { NemesisBand } from './nemesis-log.ts';
import { randomHistory } from './random-history.ts';
import { type Bug, DRIFT_PPM } from './random-leaders.ts';

/** The rarest false alarm that was put into a judge showed in the 65th. */
const GOOD_HISTORIES = 200;
/** Every judge has noticed its bugs by the second. */
const BAD_HISTORIES = 12;
const OPERATIONS = 300;

/** A failure names the seed, and this replays it alone. */
const REPLAYED = process.env['JEPSEN_SEED'];
const seeds = (first: number, count: number): number[] =>
  REPLAYED === undefined ? Array.from({ length: count }, (_, i) => first + i) : [Number(REPLAYED)];
/** Good histories are new with every run. Bad ones are always the same: a bug may happen not to show. */
const FIRST_GOOD = Math.floor(Math.random() * 1_000_000_000);
const FIRST_BAD = 1;
const replay = (seed: number): string => `replay with JEPSEN_SEED=${seed}`;

const HORIZON_MILLIS = 120_000;

function checkAll(
  operations: readonly Operation[],
  bands: readonly NemesisBand[] = [],
  fates: Fates = NO_FATES,
): CheckResult[] {
  const budgets = budgetsOf(operations);
  const search = { driftPpm: DRIFT_PPM, bands, answersMax: 1_000, stepsMax: 100_000 };
  return [
    checkRealTime(budgets, bands),
    checkCertificate(budgets, { driftPpm: DRIFT_PPM, requestIdHorizonMillis: HORIZON_MILLIS, fates, bands }),
    checkLinearizability(budgets, { ...search, mode: 'strict' }),
    checkLinearizability(budgets, { ...search, mode: 'lenient' }),
    checkFalseDenials(budgets, { driftPpm: DRIFT_PPM, fates, bands, settleMillis: 100, slackMillis: 0 }),
  ];
}

const namesOf = (results: readonly CheckResult[]): string[] => results.map(({ name }) => name);

describe('good histories', () => {
  it(`raise no alarm, ${GOOD_HISTORIES} at random, with and without what the log tells`, () => {
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
    // They would be worth little without.
    expect(Math.min(retries, unknowns)).toBeGreaterThan(REPLAYED === undefined ? 100 : -1);
  });
});

describe('bad histories', () => {
  /** Who must notice, at least in some of them; all of them must be noticed by somebody. */
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
      const caught = namesOf(results.filter(({ status }) => status === 'violation'));
      expect({ replay: replay(seed), caught: caught.length > 0 }).toEqual({
        replay: replay(seed),
        caught: true,
      });
      for (const name of caught) caughtBy.add(name);
    }
    // One history alone need not show everything.
    expect(bad).toBeGreaterThan(REPLAYED === undefined ? 0 : -1);
    expect([...caughtBy]).toEqual(expect.arrayContaining(REPLAYED === undefined ? [...by] : []));
  });
});

/** A grant of a limit of 1 per 100 ms, decided at `at`, in milliseconds of both clocks. */
function answer(at: number, more: Partial<Operation> = {}): Operation {
  return {
    process: at,
    user: 'ada',
    rule: 'default',
    node: 1,
    invokeNanos: at * 1e6,
    completeNanos: (at + 1) * 1e6,
    limit: 1,
    windowMillis: 100,
    cost: 1,
    timestampMillis: null,
    allowed: true,
    status: 200,
    requestId: `r${at}`,
    group: 0,
    index: at,
    position: null,
    term: 1,
    timeMillis: at,
    remaining: 0,
    class: 'ok',
    error: null,
    ...more,
  };
}

function violations(operations: readonly Operation[], fates?: Fates): string[] {
  return namesOf(checkAll(operations, [], fates).filter(({ status }) => status === 'violation'));
}

const event = (timeMillis: number, more: Partial<Operation>): Operation =>
  answer(timeMillis, {
    rule: 'event',
    limit: 1,
    windowMillis: 100,
    timestampMillis: timeMillis,
    position: 0,
    ...more,
  });
/** The same, at other moments of the machine than of its caller. */
const eventAt = (millis: number, stamp: number, more: Partial<Operation> = {}): Operation =>
  event(stamp, {
    index: millis,
    requestId: `e${millis}`,
    invokeNanos: millis * 1e6,
    completeNanos: millis * 1e6,
    ...more,
  });
const found = (...operations: readonly Operation[]): string[] =>
  checkAll(operations).flatMap(({ name, findings }) => (name === 'certificate' ? findings : []));

describe('single rules', () => {
  // 100 ms are widened to 102: the drift, and the rounding.
  it('a grant exactly a window old is out, and one a millisecond younger counts', () => {
    expect(violations([answer(10), answer(112)])).toEqual([]);
    expect(violations([answer(10), answer(111)])).toEqual([
      'certificate',
      'linearizability-strict',
      'linearizability-lenient',
    ]);
    expect(violations([answer(10), answer(50)])).toContain('real-time');
  });

  it('a denial at exactly a window is wrong, though real time cannot tell', () => {
    const denial = answer(112, { allowed: false, status: 429, index: 10 });
    expect(violations([answer(10), denial])).toEqual(['certificate', 'linearizability-strict']);
    expect(violations([answer(10), { ...denial, timeMillis: 111 }])).toEqual([]);
  });

  it('what is answered before a request is made comes before it in the log', () => {
    const [early, late] = [answer(10, { index: 9 }), answer(500, { index: 8, timeMillis: 10 })];
    expect(violations([early, { ...late, user: 'bob' }])).toContain('certificate');
  });

  it('group time may lag behind real time and never lead it', () => {
    expect(violations([answer(10), answer(500, { timeMillis: 400 })])).toEqual([]);
    expect(violations([answer(10), answer(500, { timeMillis: 600 })])).toEqual(['certificate']);
  });

  it('one entry has one term and one time', () => {
    const other = { user: 'bob', index: 10 };
    expect(violations([answer(10), answer(10, other)])).toEqual([]);
    expect(violations([answer(10), answer(10, { ...other, term: 2 })])).toEqual(['certificate']);
    expect(violations([answer(10), answer(10, { ...other, timeMillis: 9 })])).toEqual(['certificate']);
  });

  it('a lost answer explains a denial until the log tells that nothing was charged', () => {
    const lost = answer(10, { class: 'info', allowed: null, status: 0, index: null, timeMillis: null });
    const denial = answer(50, { allowed: false, status: 429 });
    expect(violations([lost, denial])).toEqual([]);
    expect(violations([lost, denial], new Map([[lost, { kind: 'uncharged' }]]))).toEqual([
      'certificate',
      'false-denials',
    ]);
    const at = { group: 0, index: 10, position: null, timeMillis: 10 };
    expect(violations([lost, denial], new Map([[lost, { kind: 'granted', at: [at] }]]))).toEqual([]);
    const elsewhere = { ...at, timeMillis: 10, index: 60 };
    expect(violations([lost, denial], new Map([[lost, { kind: 'logged', at: [elsewhere] }]]))).toEqual([
      'certificate',
    ]);
  });

  it('a user whose bytes are not UTF-8 is refused, if there is an answer', () => {
    const user = `${MALFORMED_USER}ff`;
    const refused = answer(10, { user, class: 'fail', allowed: null, status: 400 });
    const lost = answer(10, { user, class: 'info', allowed: null, status: 0 });
    expect(checkRefusals([refused, lost, answer(10)])).toMatchObject({
      status: 'ok',
      counts: { asked: 2, refused: 1 },
    });
    expect(checkRefusals([answer(10, { user })]).status).toBe('violation');
    expect(checkRefusals([{ ...refused, status: 503 }]).status).toBe('violation');
  });

  it('a retry has the same answer, and is not a second grant', () => {
    const first = answer(10);
    const retry = { ...first, process: 99, invokeNanos: 20e6, completeNanos: 21e6 };
    expect(violations([first, retry])).toEqual([]);
    expect(violations([first, { ...retry, remaining: 1 }])).toEqual(['certificate']);
    expect(violations([first, answer(300, { requestId: first.requestId })])).toEqual(['certificate']);
    const denied = answer(50, { requestId: first.requestId, allowed: false, status: 429 });
    expect(violations([first, denied])).toEqual(['certificate']);
  });

  it('grants of one entry are checked together, in the order their answers tell', () => {
    const of3 = { limit: 3, index: 10, timeMillis: 10 };
    const batch = [2, 0, 1].map((remaining, i) => answer(10, { ...of3, remaining, requestId: `b${i}` }));
    expect(violations(batch)).toEqual([]);
    expect(violations([...batch.slice(0, 2), answer(10, { ...of3, remaining: 2, requestId: 'b9' })])).toEqual(
      ['certificate'],
    );
  });

  it('grants of one entry that tell their places are checked in that order', () => {
    const of3 = { limit: 3, index: 10, timeMillis: 10 };
    const at = (position: number, remaining: number): Operation =>
      answer(10, { ...of3, position, remaining, requestId: `b${position}` });
    expect(violations([at(4, 0), at(0, 2), at(3, 1)])).toEqual([]);
    expect(violations([at(4, 0), at(0, 1), at(3, 2)])).toEqual(['certificate']);
    const denied = { ...at(2, 0), allowed: false, status: 429, requestId: 'd', cost: 3 };
    expect(violations([at(0, 2), at(3, 1), at(4, 0), { ...denied, remaining: 2 }])).toEqual([]);
    expect(violations([at(0, 2), at(3, 1), at(4, 0), { ...denied, remaining: 1 }])).toEqual(['certificate']);
    // One that was read from the state saw all of the entry.
    const read = { ...denied, position: null };
    expect(violations([at(0, 2), at(3, 1), at(4, 0), { ...read, remaining: 0 }])).toEqual([]);
    expect(violations([at(0, 2), at(3, 1), at(4, 0), { ...read, remaining: 1 }])).toEqual(['certificate']);
  });

  it('two grants never have one receipt', () => {
    const first = answer(10, { limit: 9, position: 0, remaining: 8 });
    const other = answer(10, { limit: 9, position: 0, remaining: 8, user: 'bob', requestId: 'b' });
    expect(violations([first, other])).toEqual(['certificate']);
    expect(violations([first, { ...other, position: 1 }])).toEqual([]);
    expect(violations([first, { ...first, process: 99, invokeNanos: 20e6, completeNanos: 21e6 }])).toEqual(
      [],
    );
  });

  it("timestamps of the caller are judged in the caller's time, without widening", () => {
    const first = answer(10, { timestampMillis: 1_000, timeMillis: 1_000 });
    expect(violations([first, answer(11, { timestampMillis: 1_100, timeMillis: 1_100 })])).toEqual([]);
    expect(violations([first, answer(11, { timestampMillis: 1_099, timeMillis: 1_099 })])).toContain(
      'certificate',
    );
  });

  it('a denial at the time of the caller is judged there, and no user is held back behind nothing', () => {
    const first = event(10, { index: 1 });
    const denied = { allowed: false, status: 429, remaining: 0, index: 2 } as const;
    expect(found(first, event(109, denied))).toEqual([]);
    expect(found(first, event(110, denied))).toEqual([expect.stringContaining('at most 0 of 1 were spent')]);
    // Late: judged at the newest stamp.
    expect(found(first, event(10, { ...denied, timestampMillis: 5 }))).toEqual([]);
    const soon = { ...denied, invokeNanos: first.invokeNanos + 1e6, completeNanos: first.invokeNanos + 2e6 };
    expect(found(first, event(200, { ...soon, timestampMillis: 150 }))).toEqual([
      expect.stringContaining('at most 0 of 1 were spent'),
    ]);
  });

  it('stamps of one user never go back, and none is later than the caller asked for without a grant there', () => {
    const first = event(500, { index: 1 });
    expect(found(first, event(300, { index: 2, timestampMillis: 300 }))).toEqual(
      expect.arrayContaining([expect.stringContaining('stamped before an earlier grant at 500 ms')]),
    );
    expect(found(event(500, { index: 1, timestampMillis: 400 }))).toEqual([
      expect.stringContaining('judged later than its own time 400 for no grant'),
    ]);
  });

  describe('a user of callers that was idle for a minute, and then asks in another epoch', () => {
    const DAYS_MILLIS = 86_400_000;
    const NOW_MILLIS = 100 * DAYS_MILLIS;
    /** The window of a rule for callers is not widened in their time, and is in that of the cluster. */
    const IDLE_MILLIS = 60_000 + 102;
    /** Tells group time. */
    const clock = answer(1, { user: 'bob', timeMillis: NOW_MILLIS, position: 0 });
    const near = eventAt(10, NOW_MILLIS);
    const far = (millis: number, more?: Partial<Operation>): Operation => eventAt(millis, 5_000, more);
    const AFTER = 10 + IDLE_MILLIS;

    it('begins anew, once', () => {
      expect(violations([clock, near, far(AFTER)])).toEqual([]);
      // From then on it is known, and for a day.
      expect(found(clock, near, far(AFTER), eventAt(AFTER + 1, 5_099))).toEqual([
        expect.stringContaining('1 of 1 were spent'),
      ]);
      const back = eventAt(AFTER + 10, NOW_MILLIS + AFTER);
      expect(violations([clock, near, far(AFTER), back])).toEqual([]);
      expect(found(clock, near, far(AFTER), back, far(AFTER + 10 + IDLE_MILLIS))).toEqual(
        expect.arrayContaining([expect.stringContaining('were spent')]),
      );
    });

    it('not before', () => {
      expect(violations([clock, near, far(AFTER - 7)])).toEqual(
        expect.arrayContaining(['certificate', 'linearizability-lenient']),
      );
    });

    it('not if it was granted something there before', () => {
      const [first, second] = [far(5), far(AFTER)];
      expect(violations([clock, first, near, second])).toEqual(
        expect.arrayContaining(['certificate', 'linearizability-lenient']),
      );
    });

    it('not within 31 days and a window of the first answer', () => {
      const epoch = NOW_MILLIS - 31 * DAYS_MILLIS;
      expect(found(clock, near, eventAt(AFTER, epoch - 102))).toEqual([]);
      expect(found(clock, near, eventAt(AFTER, epoch - 101))).not.toEqual([]);
      // Nothing tells when that was.
      expect(found(near, far(AFTER))).not.toEqual([]);
    });

    it('and is told what remains for a new user', () => {
      const of3 = { limit: 3 };
      const spent = eventAt(10, NOW_MILLIS, { ...of3, cost: 2, remaining: 1 });
      expect(found(clock, spent, far(AFTER, { ...of3, remaining: 2 }))).toEqual([]);
      expect(found(clock, spent, far(AFTER, { ...of3, remaining: 0 }))).not.toEqual([]);
    });
  });

  it('a denial behind a stamp of a caller does not tell group time', () => {
    const first = event(50_000, { index: 1, invokeNanos: 1e6, completeNanos: 2e6 });
    const now = answer(3, { user: 'bob', index: 2, position: 0 });
    const held = {
      requestId: 'x',
      timestampMillis: null,
      allowed: false,
      status: 429,
      remaining: 0,
      index: 3,
    };
    expect(found(first, now, event(50_000, { ...held, invokeNanos: 4e6, completeNanos: 5e6 }))).toEqual([]);
  });

  it('a repetition after the horizon is another request, and may be charged again', () => {
    const horizon = { requestIdHorizonMillis: 1_000, lateMillis: 100 };
    const lost = answer(10, { requestId: 'r', class: 'info', allowed: null, status: 0, index: null });
    const again = (at: number) => answer(at, { requestId: 'r', index: 5 });
    expect(budgetsOf([lost, again(500)], horizon)[0]?.unknowns).toHaveLength(0);
    expect(budgetsOf([lost, again(2_000)], horizon)[0]?.unknowns).toHaveLength(1);
  });

  it('a false denial is an error when healthy and a number under faults', () => {
    const operations = [answer(10), answer(400, { allowed: false, status: 429, index: 10, timeMillis: 60 })];
    const check = (bands: readonly NemesisBand[]): CheckResult | undefined =>
      checkAll(operations, bands).at(-1);
    expect(check([])).toMatchObject({ status: 'violation', counts: { falseWhenHealthy: 1 } });
    const band = { kind: 'kill', nodes: [], startNanos: 0, endNanos: 250e6 };
    expect(check([band])).toMatchObject({ status: 'ok', counts: { falseUnderFaults: 1 } });
  });

  it('a search that takes too long is not called linearizable', () => {
    const budgets = budgetsOf([answer(10), answer(50)]);
    const options = { driftPpm: 0, bands: [], answersMax: 10, stepsMax: 1, mode: 'strict' } as const;
    expect(checkLinearizability(budgets, options).status).toBe('unknown');
  });
});
