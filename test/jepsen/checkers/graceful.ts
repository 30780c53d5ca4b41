/**
 * A planned restart of a node costs its clients nothing. A client that reconnects sees no other error, and no request
 * waits longer than a leadership hand-over takes.
 */
import { unavailabilityGaps } from '../gaps.ts';
import type { Operation } from '../history.ts';
import { type NemesisBand, overlaps } from '../nemesis-log.ts';
import { type CheckResult, Findings } from './result.ts';

const GRACEFUL = /^(rolling|graceful)-restart$/;
/**
 * A listener that closes refuses connections, or resets those it had not accepted yet. In both cases the request was
 * not sent.
 */
const TRIES_AGAIN = /^(ECONNREFUSED|ECONNRESET on a new connection)$/;
/** A leader tries to find a successor for at most this long, and then a client's request reaches the successor. */
const HAND_OVER_MILLIS_MAX = 2_000;
const NANOS_PER_MILLI = 1e6;

export function checkGraceful(history: readonly Operation[], bands: readonly NemesisBand[]): CheckResult {
  const findings = new Findings('graceful');
  const graceful = bands.filter(({ kind }) => GRACEFUL.test(kind));
  const others = bands.filter(({ kind }) => !GRACEFUL.test(kind));
  const settleNanos = HAND_OVER_MILLIS_MAX * NANOS_PER_MILLI;
  /** Judged are only moments inside a graceful restart without any other fault. */
  const isJudged = (from: number, to: number): boolean =>
    graceful.some((band) => overlaps(band, from, to)) &&
    !others.some((band) => overlaps(band, from, to, settleNanos));
  findings.tally('restarts', graceful.length);
  for (const { status, invokeNanos, completeNanos, node, user, error } of history) {
    if (completeNanos === null || status !== 0 || !isJudged(invokeNanos, completeNanos)) continue;
    if (TRIES_AGAIN.test(error ?? '')) findings.tally('triedAgain');
    else findings.add(`node ${node} stopped, and a client of it saw: ${error} (${user})`);
  }
  for (const { group, startNanos, endNanos } of unavailabilityGaps(history, HAND_OVER_MILLIS_MAX)) {
    if (!isJudged(startNanos, endNanos)) continue;
    const millis = ((endNanos - startNanos) / NANOS_PER_MILLI).toFixed(0);
    findings.add(`partition ${group} decided nothing for ${millis} ms of a graceful restart`);
  }
  return findings.result();
}
