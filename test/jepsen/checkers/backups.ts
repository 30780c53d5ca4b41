/**
 * Judges the backups that were taken while the cluster ran. Each must equal the state that the log of every group leads
 * to, hold what was acknowledged before it began, and be undamaged. The check knows a backup only by its manifest.
 */
import type { GroupId } from '../../../raft/types.ts';
import { type Backup, type FinishedBackup, isFinished } from '../backup-history.ts';
import type { GroupStates } from '../group-states.ts';
import type { Operation } from '../history.ts';
import type { JointHistory, Receipt } from '../joint-history.ts';
import { type CheckResult, Findings, skipped } from './result.ts';

export interface BackupsOptions {
  readonly history: readonly Operation[];
  readonly joint: JointHistory;
  /** The states that the logs lead to. Undefined: there are no logs. */
  readonly states: ReadonlyMap<GroupId, GroupStates> | undefined;
}

const META: GroupId = 0;

export function checkBackups(backups: readonly Backup[], options: BackupsOptions): CheckResult {
  if (backups.length === 0) return skipped('backups', 'none was taken');
  const findings = new Findings('backups');
  const acknowledged = new Acknowledged(options);
  const finished = backups.filter(isFinished).sort((a, b) => a.invokeNanos - b.invokeNanos);
  for (const backup of finished) {
    if (backup.damage !== null) findings.add(`${backup.directory} is damaged: ${backup.damage}`);
    for (const finding of acknowledged.lackedBy(backup)) findings.add(finding);
    if (options.states !== undefined) compareWithLogs(backup, options.states, findings);
  }
  findings.tally('acknowledgedCompared', acknowledged.compared);
  return findings.result();
}

/** Compares the backup with the state that the log of each group has at the index that the backup names. */
function compareWithLogs(
  { directory, groups, rulesVersion }: FinishedBackup,
  logs: ReadonlyMap<GroupId, GroupStates>,
  findings: Findings,
): void {
  for (const { group, index, term, timeMillis, stateHash } of groups) {
    const log = logs.get(group);
    if (log === undefined || log.firstIndex > 1) {
      findings.tally('groupsNotReplayed');
      continue;
    }
    const at = `${directory}: group ${group} at ${index}`;
    const state = log.states.get(index);
    findings.tally('groupsReplayed');
    if (state === undefined) {
      findings.add(`${at}: its log ends at ${log.lastIndex}`);
      continue;
    }
    if (state.term !== term || state.timeMillis !== timeMillis)
      findings.add(
        `${at} reports term ${term} and ${timeMillis} ms; in the log that entry has term ${state.term} and ${state.timeMillis} ms`,
      );
    if (state.stateHash !== stateHash)
      findings.add(`${at} has the hash ${stateHash}, but the log leads to ${state.stateHash}`);
    if (group === META && state.rulesVersion !== rulesVersion)
      findings.add(
        `${at} reports version ${rulesVersion} of the rules, but the log leads to ${state.rulesVersion}`,
      );
  }
}

interface Reported {
  readonly completeNanos: number;
  readonly group: GroupId;
  readonly index: number;
  readonly what: string;
}

/** The state acknowledged to clients at a moment. Queries must come in the order of time. */
class Acknowledged {
  readonly #receipts: readonly Reported[];
  readonly #versions: readonly { readonly completeNanos: number; readonly version: number }[];
  readonly #newest = new Map<GroupId, Reported>();
  #nextReceipt = 0;
  #nextVersion = 0;
  #version = 0;
  compared = 0;

  constructor({ history, joint }: BackupsOptions) {
    const receipts = [
      ...history.flatMap((op) => reportBy(op, op.user)),
      ...joint.asks.flatMap((ask) => reportOf(ask, ask.receipt, ask.limits[0]?.key ?? '')),
      ...joint.refunds.flatMap((refund) => reportOf(refund, refund.receipt, refund.key)),
    ];
    this.#receipts = receipts.sort(byCompletion);
    this.#versions = joint.changes
      .flatMap(({ class: outcome, version, completeNanos }) =>
        outcome === 'ok' && version !== null ? [{ version, completeNanos }] : [],
      )
      .sort(byCompletion);
  }

  /** Lists what was acknowledged before the backup began and is missing from it. */
  *lackedBy({ directory, invokeNanos, groups, rulesVersion }: FinishedBackup): Generator<string> {
    this.#goTo(invokeNanos);
    if (rulesVersion < this.#version)
      yield `${directory} has version ${rulesVersion} of the rules, but ${this.#version} was acknowledged before it began`;
    const indices = new Map(groups.map(({ group, index }) => [group, index]));
    for (const [group, { index, what }] of this.#newest) {
      this.compared += 1;
      const held = indices.get(group);
      if (held === undefined) yield `${directory} lacks group ${group}`;
      else if (held < index)
        yield `${directory} has group ${group} at ${held}, but the answer to ${what} at ${index} was acknowledged before it began`;
    }
  }

  #goTo(nanos: number): void {
    for (; (this.#receipts[this.#nextReceipt]?.completeNanos ?? Infinity) < nanos; this.#nextReceipt += 1) {
      const receipt = this.#receipts[this.#nextReceipt];
      if (receipt !== undefined && receipt.index > (this.#newest.get(receipt.group)?.index ?? 0))
        this.#newest.set(receipt.group, receipt);
    }
    for (; (this.#versions[this.#nextVersion]?.completeNanos ?? Infinity) < nanos; this.#nextVersion += 1)
      this.#version = Math.max(this.#version, this.#versions[this.#nextVersion]?.version ?? 0);
  }
}

function byCompletion(a: { readonly completeNanos: number }, b: { readonly completeNanos: number }): number {
  return a.completeNanos - b.completeNanos;
}

function reportBy({ class: outcome, group, index, completeNanos }: Operation, what: string): Reported[] {
  if (outcome !== 'ok' || group === null || index === null || completeNanos === null) return [];
  return [{ completeNanos, group: group + 1, index, what }];
}

function reportOf(
  { completeNanos }: { readonly completeNanos: number },
  receipt: Receipt | null,
  what: string,
): Reported[] {
  return receipt === null ? [] : [{ completeNanos, group: receipt.group + 1, index: receipt.index, what }];
}
