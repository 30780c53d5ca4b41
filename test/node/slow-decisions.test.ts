/** Tests the log lines about slow decisions: few lines, with times, without user ids. */
import { questionOf } from '../../src/api/question.ts';
import { describe, expect, it } from 'vitest';
import { LINE_MILLIS, SLOW_MILLIS, SlowDecisions } from '../../src/node/slow-decisions.ts';
import type { EntryTiming } from '../../src/partition/entry-timing.ts';
import { decisionOf } from '../api/decision-of.ts';

class Bench {
  now = 1_000;
  readonly lines: Record<string, unknown>[] = [];
  readonly slow = new SlowDecisions({
    monotonicMillis: () => this.now,
    logger: { warn: (fields: object, text: string) => void this.lines.push({ ...fields, text }) },
  });

  applied(times: Partial<EntryTiming>): void {
    const none = { queueMillis: 0, commitMillis: 0, applyMillis: 0 };
    const sample = { userId: 'ada@example.com', ruleId: undefined, cost: 1, timestampMillis: undefined };
    this.slow.entryApplied(7, { term: 3, index: 90, requests: 5, ...none, sample, ...times });
  }
}

describe('a slow decision', () => {
  it('is logged with the times of its steps', () => {
    const bench = new Bench();
    bench.slow.wrote(9);
    bench.now += 60_000;
    bench.slow.wrote(0.25);
    bench.slow.wrote(0.01);
    bench.applied({ queueMillis: 20.4, commitMillis: 300, applyMillis: 2 });
    expect(bench.lines).toMatchObject([
      {
        partition: 7,
        term: 3,
        index: 90,
        requests: 5,
        millis: 322,
        queueMillis: 20,
        commitMillis: 300,
        // The slowest write that ended meanwhile.
        writeMillis: 250,
        applyMillis: 2,
        request: expect.stringMatching(/^[0-9a-f]{16}$/) as string,
      },
    ]);
    expect(JSON.stringify(bench.lines)).not.toContain('ada');
  });

  it('is also logged by the node that was asked, with the same position in the Raft log', () => {
    const bench = new Bench();
    const decision = decisionOf({ decided: { term: 3, index: 90, timeMillis: 1 } });
    const request = questionOf({ userId: 'ada@example.com' });
    bench.slow.answered(request, { kind: 'decision', decision }, { millis: 450.2, partition: 7, leader: 2 });
    expect(bench.lines).toMatchObject([{ millis: 450, partition: 7, leader: 2, term: 3, index: 90 }]);
    expect(JSON.stringify(bench.lines)).not.toContain('ada');
  });

  it('causes one line in ten seconds, which counts the others', () => {
    const bench = new Bench();
    for (let i = 0; i < 50; i += 1) bench.applied({ commitMillis: SLOW_MILLIS });
    expect(bench.lines).toHaveLength(1);
    bench.now += LINE_MILLIS;
    bench.applied({ commitMillis: SLOW_MILLIS });
    expect(bench.lines).toHaveLength(2);
    expect(bench.lines[1]).toMatchObject({ unsaid: 49 });
    expect(bench.slow.count).toBe(51);
  });

  it('is the only kind of decision that is logged', () => {
    const bench = new Bench();
    bench.applied({ queueMillis: 50, commitMillis: 49 });
    bench.slow.answered(
      questionOf({ userId: 'ada' }),
      { kind: 'unlimited', rulesVersion: 1 },
      { millis: 99 },
    );
    expect([bench.lines, bench.slow.count]).toEqual([[], 0]);
  });
});
