/**
 * Reads the requests from the logs of the stopped nodes and their archives, and how they were decided. Without an
 * archive, entries before the base of the log are gone into a snapshot, and entries before the snapshot exist but
 * cannot be decided again.
 */
import type { Entry, SnapshotMeta } from '../../raft/types.ts';
import { requestsOf as askedIn, rowsOf } from '../../src/limiter/log/batch.ts';
import { decodeCommand } from '../../src/limiter/log/command.ts';
import { DEFAULT_RULE } from '../../src/limiter/rules.ts';
import { LimiterStateMachine } from '../../src/limiter/state-machine.ts';
import { META_GROUP } from '../../src/meta/cluster-placement.ts';
import { groupOfPartition } from '../../src/partition/placement.ts';
import {
  committedThrough,
  fullestReplica,
  lastOf,
  type Replicas,
  sameThrough,
  type StoppedNodes,
  wholeLog,
} from './stopped-nodes.ts';

export interface LoggedRequest {
  readonly index: number;
  /** Position in the entry. */
  readonly position: number;
  readonly term: number;
  /** Group time of the entry. */
  readonly timeMillis: number;
  readonly user: string;
  /** '' for the default rule, when it is unknown which rule that was. */
  readonly rule: string;
  readonly requestId: string | null;
  readonly cost: number;
  /** Undefined if the state before the decision is gone. A retry has the receipt of its first attempt. */
  readonly decision:
    | {
        readonly allowed: boolean;
        readonly index: number;
        readonly position: number | null;
        readonly timeMillis: number;
        readonly remaining: number;
      }
    | undefined;
}

export interface PartitionLog {
  readonly partition: number;
  /** Entries up to here are gone. */
  readonly baseIndex: number;
  /** Decisions are known for entries after this. */
  readonly snapshotIndex: number;
  /** Entries up to here are known to be committed. Later ones may be. */
  readonly committedIndex: number;
  readonly lastIndex: number;
  /** For each node that has the partition, the index up to which its log equals this one. */
  readonly heldThrough: readonly number[];
  /** In the order of the log. */
  readonly requests: readonly LoggedRequest[];
}

export async function readLogs(nodes: StoppedNodes): Promise<PartitionLog[]> {
  const logs: PartitionLog[] = [];
  for (const group of nodes.groups()) {
    if (group === META_GROUP) continue;
    const log = partitionLog({
      partition: group - groupOfPartition(0),
      replicas: await nodes.load(group),
      copies: nodes.config.replicas,
      archived: (index, term) => nodes.archive.entriesThrough(group, index, term),
    });
    if (log !== undefined) logs.push(log);
  }
  return logs;
}

interface PartitionLogInit {
  readonly partition: number;
  readonly replicas: Replicas;
  readonly copies: number;
  /** The entries up to a given one, as far back as they exist. */
  readonly archived: (index: number, term: number) => readonly Entry[];
}

function partitionLog({ partition, replicas, copies, archived }: PartitionLogInit): PartitionLog | undefined {
  const fullest = fullestReplica(replicas);
  if (fullest === undefined) return undefined;
  const entries = wholeLog(replicas, fullest, archived);
  const baseIndex = (entries[0]?.index ?? fullest.base.index + 1) - 1;
  // If the log starts at its first entry, no snapshot is needed, and none is trusted.
  const snapshot = baseIndex === 0 ? undefined : fullest.snapshot;
  return {
    partition,
    baseIndex,
    snapshotIndex: snapshot?.index ?? 0,
    committedIndex: committedThrough(replicas, fullest, copies),
    lastIndex: lastOf(fullest).index,
    heldThrough: [...replicas.values()].map((stored) => sameThrough(stored, fullest)),
    requests: requestsOf({ entries, snapshot, chunks: fullest.chunks }),
  };
}

function requestsOf({
  entries,
  snapshot,
  chunks,
}: {
  readonly entries: readonly Entry[];
  readonly snapshot: SnapshotMeta | undefined;
  readonly chunks: readonly Uint8Array[];
}): LoggedRequest[] {
  const machine = machineFrom(snapshot === undefined ? undefined : chunks);
  const snapshotIndex = snapshot?.index ?? 0;
  const requests: LoggedRequest[] = [];
  for (const entry of entries) {
    if (entry.kind !== 'command') continue;
    const command = decodeCommand(entry.data);
    const isReplayed = entry.index > snapshotIndex;
    const decisions: LoggedRequest['decision'][] = [];
    if (isReplayed) {
      machine.apply(command, entry, (i, { allowed, remaining, decided }) => {
        const { index, position = null, timeMillis } = decided;
        decisions[i] = { allowed, remaining, index, position, timeMillis };
      });
    }
    if (command.type !== 'allow') continue;
    const { index, term, timeMillis } = entry;
    let row = 0;
    for (const asked of askedIn(command.batch)) {
      // A request under several limits has a row for each, and its position is that of the first row.
      const position = row;
      row += rowsOf(asked);
      // Refunds are judged by the answers that clients saw.
      if (asked.ask === 'refund') continue;
      const { userId, ruleId: named, requestId, cost } = asked;
      const byDefault = isReplayed ? machine.ruleTable?.rules[0]?.id : undefined;
      requests.push({
        index,
        position,
        term,
        timeMillis,
        user: userOf(userId),
        rule: named ?? byDefault ?? DEFAULT_RULE,
        requestId: requestId ?? null,
        cost: cost ?? 1,
        decision: decisions[position],
      });
    }
  }
  return requests;
}

/** The user of a key that counts by user alone, otherwise the key. Parsed here without the code of the product. */
function userOf(key: string): string {
  const [, value] = /^user=([^,]*)$/.exec(key) ?? [];
  return value === undefined ? key : value.replaceAll('%2c', ',').replaceAll('%25', '%');
}

/** A state machine from a snapshot, or an empty one. */
export function machineFrom(chunks: readonly Uint8Array[] | undefined): LimiterStateMachine {
  const machine = new LimiterStateMachine();
  if (chunks === undefined) return machine;
  const restore = machine.restore();
  for (const chunk of chunks) restore.add(chunk);
  restore.complete();
  restore.install();
  return machine;
}
