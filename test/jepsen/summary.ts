/** One row per run for the table of results: the number of requests, the faults, and their effect on clients. */
import type { Operation } from './history.ts';
import { type NemesisBand, overlaps } from './nemesis-log.ts';
import { SLOW_MACHINE } from './slow-machine.ts';
import type { Verdict } from './verdict.ts';

export interface Summary {
  readonly command: string;
  readonly verdict: Verdict['verdict'];
  readonly operations: number;
  readonly grants: number;
  readonly faults: number;
  /** The longest span without a decision for some group of users. */
  readonly longestGapMillis: number;
  /** The latency of decided operations while there was no fault, and during faults. */
  readonly quietP99Millis: number;
  readonly faultyP99Millis: number;
  /** The longest time from the end of a fault to the first grant after it. */
  readonly slowestRecoveryMillis: number;
}

/** For this long after a fault its effects are counted as part of it. */
const SETTLE_NANOS = 1e9;

export function summaryOf(
  command: string,
  history: readonly Operation[],
  bands: readonly NemesisBand[],
  verdict: Verdict,
): Summary {
  const quiet: number[] = [];
  const faulty: number[] = [];
  for (const { class: outcome, invokeNanos, completeNanos } of history) {
    if (outcome !== 'ok' || completeNanos === null) continue;
    const isFaulty = bands.some((band) => overlaps(band, invokeNanos, completeNanos, SETTLE_NANOS));
    (isFaulty ? faulty : quiet).push((completeNanos - invokeNanos) / 1e6);
  }
  const gaps = verdict.gaps.map(({ startNanos, endNanos }) => (endNanos - startNanos) / 1e6);
  const recoveries = verdict.recoveries.map(({ firstGrantMillis }) => firstGrantMillis ?? 0);
  return {
    command,
    verdict: verdict.verdict,
    operations: verdict.operations.total,
    grants: verdict.operations.granted,
    faults: bands.filter(({ kind }) => kind !== SLOW_MACHINE).length,
    longestGapMillis: Math.round(Math.max(0, ...gaps)),
    quietP99Millis: p99(quiet),
    faultyP99Millis: p99(faulty),
    slowestRecoveryMillis: Math.round(Math.max(0, ...recoveries)),
  };
}

function p99(millis: number[]): number {
  millis.sort((a, b) => a - b);
  return Math.round(millis[Math.floor(millis.length * 0.99)] ?? 0);
}

export const TABLE_HEAD = [
  '| nemesis | operations | grants | faults | longest gap, ms | first grant after, ms | p99 quiet, ms | p99 faulty, ms | verdict | command |',
  '| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |',
];

export function tableRow(name: string, summary: Summary): string {
  const { operations, grants, faults, longestGapMillis, slowestRecoveryMillis } = summary;
  const { quietP99Millis, faultyP99Millis, verdict, command } = summary;
  const cells = [
    name,
    operations,
    grants,
    faults,
    longestGapMillis,
    slowestRecoveryMillis,
    quietP99Millis,
    faultyP99Millis,
    verdict,
    `\`${command}\``,
  ];
  return `| ${cells.join(' | ')} |`;
}
