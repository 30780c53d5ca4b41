/**
 * Counts in the nodes' log output how many snapshots were taken, installed from a leader, and started from. A run that
 * should have had snapshots and had none did not test them: the result is `unknown`, not `ok`. Does not judge the
 * snapshots themselves.
 */
import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import type { NodeLog } from './logs.ts';
import { type CheckResult, Findings } from './result.ts';

export interface SnapshotOptions {
  /** The snapshot threshold of the nodes was set low, so there must be snapshots. */
  readonly isExpected: boolean;
  /** The kinds of faults in the run: some add members that have no log of their own. */
  readonly kinds: readonly string[];
}

/** After these faults some replica must begin with a leader's snapshot. */
const NEEDS_INSTALL = /^(add-node|replace-node|directory-lost)$/;

export async function checkSnapshots(
  logs: readonly NodeLog[],
  { isExpected, kinds }: SnapshotOptions,
): Promise<CheckResult> {
  const findings = new Findings('snapshots');
  const counts = { taken: 0, installed: 0, startsFromOne: 0 };
  let hasStartedAfterOne = false;
  for (const { path } of logs) {
    let hasOne = false;
    for await (const line of createInterface({ input: createReadStream(path), crlfDelay: Infinity })) {
      if (line.includes('"snapshot kept"')) {
        hasOne = true;
        counts[line.includes('"from":"leader"') ? 'installed' : 'taken'] += 1;
      } else if (line.includes('"node is up"')) {
        // A new database holds nothing.
        hasStartedAfterOne ||= hasOne && !line.includes('"partitions":0');
        if (Number(/"snapshotsLoaded":(\d+)/.exec(line)?.[1] ?? 0) > 0) counts.startsFromOne += 1;
      }
    }
  }
  for (const [what, count] of Object.entries(counts)) findings.tally(what, count);
  if (!isExpected) return findings.result('ok');
  const missing = [
    ...(counts.taken === 0 ? ['none was taken'] : []),
    ...(hasStartedAfterOne && counts.startsFromOne === 0 ? ['no node started from one'] : []),
    ...(counts.installed === 0 && kinds.some((kind) => NEEDS_INSTALL.test(kind))
      ? ['no node installed one, though nodes joined']
      : []),
  ];
  return missing.length === 0 ? findings.result('ok') : findings.result('unknown', missing.join('; '));
}
