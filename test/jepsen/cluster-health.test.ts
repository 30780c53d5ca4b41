import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { checkGraceful } from './checkers/graceful.ts';
import { checkLiveness } from './checkers/liveness.ts';
import { checkLogs, type NodeExit, symptomOf } from './checkers/logs.ts';
import { readNemesisLog, encodeBand } from './nemesis-log.ts';
import { randomHistory } from './random-history.ts';
import { checkMachine, SLOW_MACHINE, SlowMachineWatch } from './slow-machine.ts';

const MILLI = 1e6;
const KILL = { kind: 'kill', nodes: [1], startNanos: 1_000 * MILLI, endNanos: 2_000 * MILLI } as const;
const OPTIONS = { bands: [KILL], deadlineMillis: 100, slackMillis: 10, recoveryMillisMax: 500 };

const [TEMPLATE] = randomHistory({ seed: 1, operations: 1, isHealthy: true }).operations;

/** A request every 10 ms for 4 s, answered after 2 ms, except those that `but` changes. */
function steady(but: (at: number) => object | undefined) {
  if (TEMPLATE === undefined) throw new Error('a history of one operation has one');
  const template = { ...TEMPLATE, allowed: true, node: 1 };
  return Array.from({ length: 400 }, (_, i) => ({
    ...template,
    invokeNanos: i * 10 * MILLI,
    completeNanos: (i * 10 + 2) * MILLI,
    ...but(i * 10),
  }));
}

const LOST = { class: 'info', allowed: null, status: 0, error: 'ETIMEDOUT' } as const;
const between = (from: number, to: number) => (at: number) => (at >= from && at < to ? LOST : undefined);

const lateAt = (node: number) =>
  steady((at) => (at === 1_500 ? { node, completeNanos: 1_700 * MILLI } : undefined));

describe('liveness', () => {
  it('measures how long after a fault the first grant came', () => {
    const result = checkLiveness(steady(between(1_000, 2_300)), OPTIONS);
    expect(result).toMatchObject({ status: 'ok', counts: { undecided: 130, slowestRecoveryMillis: 302 } });
  });

  it('requires a grant in time, and a decision for every later request', () => {
    const result = checkLiveness(steady(between(1_000, 2_600)), OPTIONS);
    expect(result.status).toBe('violation');
    expect(result.findings).toEqual(
      expect.arrayContaining([expect.stringContaining('no grant within 500 ms after kill: 602 ms')]),
    );
    expect(checkLiveness(steady(between(500, 510)), OPTIONS).findings).toEqual([
      'node 1 did not decide a request at 500 ms, with nothing broken: ETIMEDOUT',
    ]);
  });

  it('requires at least one decision: a run with only refusals shows nothing', () => {
    const refused = steady(() => ({ class: 'fail', allowed: null, status: 400, error: 'rule' }));
    const result = checkLiveness(refused, { ...OPTIONS, bands: [] });
    expect(result.findings).toContain(`none of ${refused.length} requests was decided`);
  });

  it('makes no statement if the recording ended or another fault came too early', () => {
    const ended = steady(between(1_000, 9_999)).filter(({ invokeNanos }) => invokeNanos < 2_300 * MILLI);
    expect(checkLiveness(ended, OPTIONS)).toMatchObject({
      status: 'ok',
      counts: { recoveriesNotMeasured: 1 },
    });
  });

  it('allows a late answer only from a node that is being stopped', () => {
    expect(checkLiveness(lateAt(1), OPTIONS)).toMatchObject({ status: 'ok', counts: { lateUnderFaults: 1 } });
    expect(checkLiveness(lateAt(2), OPTIONS).findings).toEqual([
      expect.stringContaining('node 2 was late: 200 ms'),
    ]);
  });
});

const broken = (error: string) =>
  steady((at) => (at === 1_500 ? { ...LOST, error, group: 0 } : { group: 0 }));

const undecided = (to: number) =>
  steady((at) => (at >= 1_000 && at < to ? { ...LOST, status: 503, group: null } : { group: 0 }));

describe('a graceful restart', () => {
  const RESTART = { ...KILL, kind: 'rolling-restart' };
  it('may cost clients only a new connection', () => {
    expect(checkGraceful(broken('ECONNRESET on a new connection'), [RESTART])).toMatchObject({
      status: 'ok',
      counts: { restarts: 1, triedAgain: 1 },
    });
    expect(checkGraceful(broken('ECONNRESET on a kept connection'), [RESTART]).findings).toEqual([
      expect.stringContaining('node 1 stopped, and a client of it saw: ECONNRESET on a kept connection'),
    ]);
    // Another fault explains it.
    expect(checkGraceful(broken('ECONNRESET on a kept connection'), [RESTART, KILL]).status).toBe('ok');
  });

  it('leaves no partition without a decision for longer than a hand-over', () => {
    const band = { ...RESTART, endNanos: 4_000 * MILLI };
    expect(checkGraceful(undecided(2_500), [band]).status).toBe('ok');
    expect(checkGraceful(undecided(3_500), [band]).findings).toEqual([
      expect.stringMatching(/^partition 0 decided nothing for 25\d\d ms of a graceful restart/),
    ]);
  });
});

describe('a machine that is too slow', () => {
  it('is detected by a late timer, with its beginning and end', () => {
    let now = 0;
    const watch = new SlowMachineWatch(() => now);
    watch.stop();
    for (now of [20, 40, 300, 320, 340].map((at) => at * MILLI)) watch.check(now);
    expect(watch.bands).toEqual([
      { kind: SLOW_MACHINE, nodes: [], startNanos: 40 * MILLI, endNanos: 1_300 * MILLI },
    ]);
  });

  it('makes checks of time undecided if it was slow for most of the run', () => {
    const band = { ...KILL, kind: SLOW_MACHINE };
    const history = steady(() => undefined);
    expect(checkMachine(history, [band])).toMatchObject({ status: 'ok', counts: { slowMillis: 1_000 } });
    expect(checkMachine(history, [{ ...band, endNanos: 3_500 * MILLI }]).status).toBe('unknown');
  });
});

describe('node logs', () => {
  it.each([
    ['{"level":30,"msg":"leader elected"}', undefined],
    ['{"level":40,"msg":"peer lost","err":{"stack":"Error: gone\\n    at f (a.js:1:2)"}}', undefined],
    ['{"level":50,"msg":"request failed"}', 'error'],
    ['{"level":60,"msg":"this node stops"}', 'fatal error'],
    ['{"level":40,"msg":"MaxListenersExceededWarning: possible leak"}', 'leak'],
    ['plain text', undefined],
    ['    at Partition.apply (partition.js:10:3)', 'stack trace'],
    ['TypeError: x is not a function', 'stack trace'],
    ['[UnhandledPromiseRejection: because]', 'unhandled rejection'],
    ['FATAL ERROR: Reached heap limit', 'out of memory'],
    ['{"level":60,"msg":"cut off', undefined],
  ])('%s', (line, symptom) => {
    expect(symptomOf(line)).toBe(symptom);
  });

  it('are read completely; provoked errors are expected, and exits need a cause', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'quorate-logs-'));
    try {
      const path = join(directory, 'node-1.log');
      await writeFile(path, '{"level":30}\n{"level":60,"msg":"ENOSPC"}\n{"level":50,"msg":"other"}\n');
      await writeFile(join(directory, 'nemesis.jsonl'), `${encodeBand(KILL)}\n`);
      const bands = await readNemesisLog(join(directory, 'nemesis.jsonl'));
      const exit = (node: number, at: number): NodeExit => ({
        node,
        code: 1,
        signal: null,
        atNanos: at * MILLI,
      });
      const result = await checkLogs([{ node: 1, path }], {
        exits: [exit(1, 1_100), exit(2, 1_100), exit(1, 9_000)],
        bands,
        expected: [/ENOSPC/],
      });
      expect(result.counts).toMatchObject({ lines: 3, expected: 1, exits: 3 });
      expect(result.findings).toEqual([
        'node 1: error: {"level":50,"msg":"other"}',
        'node 2 exited by itself: code 1, signal null',
        'node 1 exited by itself: code 1, signal null',
      ]);
    } finally {
      await rm(directory, { recursive: true });
    }
  });
});
