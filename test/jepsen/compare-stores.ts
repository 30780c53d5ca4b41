/**
 * Compares the databases of the stopped nodes, group by group. The committed parts of their logs must be equal, and so
 * must the states that follow from them. Changes nothing.
 */
import type { Entry, GroupId, StoredGroup } from '../../raft/types.ts';
import { decodeCommand } from '../../src/limiter/log/command.ts';
import { META_GROUP } from '../../src/meta/cluster-placement.ts';
import { decodeMetaCommand, decodeMetaRecord, encodeMeta } from '../../src/meta/meta-form.ts';
import { applyMetaCommand } from '../../src/meta/meta-state.ts';
import { loadHash32 } from '../../src/partition/hash.ts';
import type { DurableGroup } from '../../storage/memory-store.ts';
import { type CheckResult, Findings } from './checkers/result.ts';
import type { Archive } from './archive.ts';
import { machineFrom } from './log-entries.ts';
import {
  committedThrough,
  entryAt,
  fullestReplica,
  isSameEntry,
  lastOf,
  type Replicas,
  sameThrough,
  type StoppedNodes,
  wholeLog,
} from './stopped-nodes.ts';

const hash = await loadHash32();

export async function compareStores(nodes: StoppedNodes): Promise<CheckResult> {
  const findings = new Findings('stores');
  for (const { node, reason } of nodes.unreadable) findings.add(`node ${node} cannot be opened: ${reason}`);
  for (const conflict of nodes.archive.conflicts) findings.add(conflict);
  for (const group of nodes.groups()) {
    const replicas = await nodes.load(group);
    compareGroup(group, replicas, nodes.config.replicas, findings);
    if (group !== META_GROUP) compareWithWholeLog(group, replicas, nodes.archive, findings);
  }
  return findings.result();
}

/** @param copies the number of copies that the group should have */
export function compareGroup(group: GroupId, replicas: Replicas, copies: number, findings: Findings): void {
  const fullest = fullestReplica(replicas);
  if (fullest === undefined) return;
  findings.tally('groups');
  const committed = committedThrough(replicas, fullest, copies);
  if (lastOf(fullest).index < committed) {
    findings.add(`group ${group}: no log reaches ${committed}, which was committed`);
    return;
  }
  for (const [node, stored] of replicas) {
    const own = Math.max(stored.hardState.commit, stored.snapshot?.index ?? 0);
    const same = sameThrough(stored, fullest);
    // Beyond the index that the node knows to be committed, a log may hold entries that are never committed.
    if (same < Math.min(own, lastOf(fullest).index)) {
      findings.add(
        `group ${group}: node ${node} has another entry ${same + 1}, which it regards as committed`,
      );
    }
    compareTerms(group, node, stored, fullest, findings);
    findings.tally('entriesCompared', Math.max(0, same - Math.max(stored.base.index, fullest.base.index)));
  }
  compareStates(group, replicas, fullest, committed, findings);
}

/** Log Matching: entries of the same index and term are the same, committed or not. */
function compareTerms(
  group: GroupId,
  node: number,
  stored: StoredGroup,
  fullest: StoredGroup,
  findings: Findings,
): void {
  for (const entry of stored.entries) {
    const other = entryAt(fullest, entry.index);
    if (other !== undefined && other.term === entry.term && !isSameEntry(entry, other)) {
      findings.add(`group ${group}: node ${node} has another entry ${entry.index} of term ${entry.term}`);
    }
  }
}

/** The states of all nodes, each from its own snapshot and log, at the last index that all of them can reach. */
function compareStates(
  group: GroupId,
  replicas: Replicas,
  fullest: StoredGroup,
  committed: number,
  findings: Findings,
): void {
  let newestSnapshot = 0;
  for (const { snapshot } of replicas.values()) {
    newestSnapshot = Math.max(newestSnapshot, snapshot?.index ?? 0);
  }
  const reach = (stored: StoredGroup): number => Math.min(committed, sameThrough(stored, fullest));
  const comparable = [...replicas].filter(([, stored]) => reach(stored) >= newestSnapshot);
  findings.tally('replicas', replicas.size);
  findings.tally('replicasBehindASnapshot', replicas.size - comparable.length);
  const index = Math.min(...comparable.map(([, stored]) => reach(stored)));
  const nodesOf = new Map<string, number[]>();
  for (const [node, stored] of comparable) {
    let state: string;
    try {
      state = group === META_GROUP ? metaStateAt(stored, index) : limiterStateAt(stored, index);
    } catch (error) {
      findings.add(`group ${group}: node ${node} cannot replay its log to ${index}: ${String(error)}`);
      continue;
    }
    nodesOf.set(state, [...(nodesOf.get(state) ?? []), node]);
  }
  if (nodesOf.size > 1) {
    const sides = [...nodesOf.values()].map((nodes) => nodes.join(', ')).join(' | ');
    findings.add(`group ${group}: different states after ${index}: nodes ${sides}`);
  }
  findings.tally('statesCompared', comparable.length);
}

/** A snapshot plus the log after it must give the same state as the whole log. */
function compareWithWholeLog(group: GroupId, replicas: Replicas, archive: Archive, findings: Findings): void {
  for (const [node, stored] of replicas) {
    const { snapshot, ...rest } = stored;
    if (snapshot === undefined) continue;
    const { index } = snapshot;
    const entries = wholeLog(replicas, stored, (...last) => archive.entriesThrough(group, ...last));
    if (entries[0]?.index !== 1) {
      findings.tally('snapshotsNotReplayed');
      continue;
    }
    findings.tally('snapshotsReplayed');
    const whole = limiterStateAt({ ...rest, entries }, index);
    if (whole !== limiterStateAt(stored, index))
      findings.add(`group ${group}: node ${node}'s snapshot ${index} is not what the log leads to`);
  }
}

function limiterStateAt(stored: DurableGroup, index: number): string {
  const machine = machineFrom(stored.snapshot === undefined ? undefined : stored.chunks);
  for (const entry of commandsAfterSnapshot(stored, index)) machine.apply(decodeCommand(entry.data), entry);
  return machine.hash();
}

function metaStateAt(stored: DurableGroup, index: number): string {
  let record = stored.snapshot === undefined ? undefined : decodeMetaRecord(stored.chunks);
  for (const entry of commandsAfterSnapshot(stored, index)) {
    record = applyMetaCommand(record, decodeMetaCommand(entry.data), hash).record;
  }
  return Buffer.from(encodeMeta(record ?? null)).toString('hex');
}

export function commandsAfterSnapshot({ snapshot, entries }: StoredGroup, through: number): Entry[] {
  const from = snapshot?.index ?? 0;
  return entries.filter(({ index, kind }) => kind === 'command' && index > from && index <= through);
}
