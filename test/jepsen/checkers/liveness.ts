/**
 * Checks that the cluster is available when it should be: how soon after a fault the first grant comes, whether answers
 * come before their deadline, and whether every request is decided once the cluster has recovered.
 */
import type { Attempt } from '../history.ts';
import { type NemesisBand, overlaps } from '../nemesis-log.ts';
import { type CheckResult, Findings } from './result.ts';

export interface LivenessOptions {
  readonly bands: readonly NemesisBand[];
  /** The deadline of one request, and the delay that a loaded machine may add. */
  readonly deadlineMillis: number;
  readonly slackMillis: number;
  /**
   * The first grant must come within this time after a fault is undone. After this time every request must be decided.
   */
  readonly recoveryMillisMax: number;
}

export interface Recovery {
  readonly kind: string;
  readonly nodes: readonly number[];
  /** From the end of the fault to the first grant requested after it. Null: there was none. */
  readonly firstGrantMillis: number | null;
}

const NANOS_PER_MILLI = 1e6;

export function checkLiveness(history: readonly Attempt[], options: LivenessOptions): CheckResult {
  const findings = new Findings('liveness');
  // Without a decision no other checker can find anything.
  if (history.length > 0 && history.every(({ allowed }) => allowed === null))
    findings.add(`none of ${history.length} requests was decided`);
  checkDeadlines(history, options, findings);
  checkRecovered(history, options, findings);
  const lastInvoke = history.reduce((last, { invokeNanos }) => Math.max(last, invokeNanos), -Infinity);
  for (const [i, { kind, firstGrantMillis }] of recoveries(history, options.bands).entries()) {
    const band = options.bands[i];
    const endNanos = band?.endNanos ?? null;
    if (endNanos === null) continue;
    if (firstGrantMillis !== null && firstGrantMillis <= options.recoveryMillisMax) {
      findings.counts['slowestRecoveryMillis'] = Math.max(
        findings.counts['slowestRecoveryMillis'] ?? 0,
        firstGrantMillis,
      );
      continue;
    }
    const limitNanos = endNanos + options.recoveryMillisMax * NANOS_PER_MILLI;
    // No statement if another fault began earlier, or if the recording ends before.
    const isDisturbed = options.bands.some(
      (other) => other !== band && overlaps(other, endNanos, limitNanos),
    );
    if (isDisturbed || lastInvoke < limitNanos) findings.tally('recoveriesNotMeasured');
    else
      findings.add(`no grant within ${options.recoveryMillisMax} ms after ${kind}: ${firstGrantMillis} ms`);
  }
  return findings.result();
}

/** One per band, in the same order. */
export function recoveries(history: readonly Attempt[], bands: readonly NemesisBand[]): Recovery[] {
  const grants = history
    .filter(({ allowed }) => allowed === true)
    .sort((a, b) => a.invokeNanos - b.invokeNanos);
  // Per grant, the earliest completion among it and all later ones.
  const firstFrom = new Float64Array(grants.length + 1).fill(Infinity);
  for (let i = grants.length - 1; i >= 0; i -= 1) {
    firstFrom[i] = Math.min(firstFrom[i + 1] ?? Infinity, grants[i]?.completeNanos ?? Infinity);
  }
  return bands.map(({ kind, nodes, endNanos }) => {
    if (endNanos === null) return { kind, nodes, firstGrantMillis: null };
    let low = 0;
    let high = grants.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((grants[middle]?.invokeNanos ?? 0) < endNanos) low = middle + 1;
      else high = middle;
    }
    const first = firstFrom[low] ?? Infinity;
    const firstGrantMillis = first === Infinity ? null : (first - endNanos) / NANOS_PER_MILLI;
    return { kind, nodes, firstGrantMillis };
  });
}

/** No request is answered after its deadline, except by nodes that are stopped or cut off meanwhile. */
function checkDeadlines(history: readonly Attempt[], options: LivenessOptions, findings: Findings): void {
  const latestNanos = (options.deadlineMillis + options.slackMillis) * NANOS_PER_MILLI;
  for (const op of history) {
    const { invokeNanos, completeNanos, node } = op;
    if (completeNanos === null) findings.tally('stillOpenAtTheEnd');
    if (completeNanos === null || completeNanos - invokeNanos <= latestNanos) continue;
    const isExcused = options.bands.some(
      (band) =>
        (node === 0 || band.nodes.length === 0 || band.nodes.includes(node)) &&
        overlaps(band, invokeNanos, completeNanos),
    );
    findings.tally(isExcused ? 'lateUnderFaults' : 'late');
    if (isExcused) continue;
    const millis = ((completeNanos - invokeNanos) / NANOS_PER_MILLI).toFixed(0);
    findings.add(`node ${node} was late: ${millis} ms for ${op.user} (${op.error ?? `status ${op.status}`})`);
  }
}

/** Once there was no fault for long enough, every request is decided. */
function checkRecovered(history: readonly Attempt[], options: LivenessOptions, findings: Findings): void {
  const settleNanos = options.recoveryMillisMax * NANOS_PER_MILLI;
  for (const { class: outcome, invokeNanos, completeNanos, error, node, status } of history) {
    if (outcome === 'ok') continue;
    // A bad request gets an answer, too. Requests still open when the recording ends are skipped.
    if ((status >= 400 && status < 500) || completeNanos === null) continue;
    findings.tally('undecided');
    if (options.bands.some((band) => overlaps(band, invokeNanos, completeNanos, settleNanos))) continue;
    const at = (invokeNanos / NANOS_PER_MILLI).toFixed(0);
    findings.add(`node ${node} did not decide a request at ${at} ms, with nothing broken: ${error}`);
  }
}
