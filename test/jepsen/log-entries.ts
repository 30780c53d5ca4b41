/**
 * Reads the requests in the logs of stopped nodes, with what they archived of them, and how they were decided. Without
 * an archive, what lies before the log's base is gone into a snapshot, and what lies before the snapshot is there, but
 * can no longer be decided again.
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
  /** In the entry. */
  readonly position: number;
  readonly term: number;
  /** Group time of the entry. */
  readonly timeMillis: number;
  readonly user: string;
  /** '' if the default rule was meant, and which one that was is not known. */
  readonly rule: string;
  readonly requestId: string | null;
  readonly cost: number;
  /** Undefined if the state it was decided by is gone. A retry has the receipt of its first attempt. */
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
  /** Decisions are known after here. */
  readonly snapshotIndex: number;
  /** Known to be committed; later entries may be. */
  readonly committedIndex: number;
  readonly lastIndex: number;
  /** Of all nodes that have the partition: up to where they agree with this log. */
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
  /** The entries up to one, as far back as they are there. */
  readonly archived: (index: number, term: number) => readonly Entry[];
}

function partitionLog({ partition, replicas, copies, archived }: PartitionLogInit): PartitionLog | undefined {
  const fullest = fullestReplica(replicas);
  if (fullest === undefined) return undefined;
  const entries = wholeLog(replicas, fullest, archived);
  const baseIndex = (entries[0]?.index ?? fullest.base.index + 1) - 1;
  // From the first entry on, no snapshot is needed, and none is believed.
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
      // A request under several limits has a row for each, and the place of its first one.
      const position = row;
      row += rowsOf(asked);
      // What is refunded is judged by what clients saw.
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

/** Of a key that counts by user alone that user; else the key. Read here without the product. */
function userOf(key: string): string {
  const [, value] = /^user=([^,]*)$/.exec(key) ?? [];
  return value === undefined ? key : value.replaceAll('%2c', ',').replaceAll('%25', '%');
}

/** A state machine as a snapshot left it, or an empty one. */
export function machineFrom(chunks: readonly Uint8Array[] | undefined): LimiterStateMachine {
  const machine = new LimiterStateMachine();
  if (chunks === undefined) return machine;
  const restore = machine.restore();
  for (const chunk of chunks) restore.add(chunk);
  restore.complete();
  restore.install();
  return machine;
}
