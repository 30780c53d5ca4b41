/** Tests the router with requests whose log entries are lost. */
import { describe, expect, it } from 'vitest';
import type { Entry } from '../../raft/types.ts';
import { encodeRules } from '../../src/limiter/log/command.ts';
import { GroupClock } from '../../raft/driver/group-clock.ts';
import { validateRuleTable } from '../../src/limiter/rules.ts';
import type { Answer } from '../../src/api/user-request.ts';
import { Partition } from '../../src/partition/partition.ts';
import { chunksOf, restoreFrom } from '../raft/driver/whole-snapshots.ts';
import { PARTITION_DEFAULTS } from '../../src/partition/partition-options.ts';

const RULES = validateRuleTable({ version: 1, rules: [{ id: 'default', limit: 5, windowMillis: 1_000 }] });

function entryOf(index: number, term: number, data: Uint8Array = new Uint8Array(0)): Entry {
  return { index, term, timeMillis: 1_000 + index, kind: 'command', data };
}

/** A partition that leads its group in term 1, with the rules at index 1. */
function leadingPartition(): Partition {
  const partition = new Partition({
    partition: 0,
    nodeId: 1,
    clock: new GroupClock(
      () => 0,
      () => 1_000,
    ),
    options: PARTITION_DEFAULTS,
    monotonicMillis: () => 0,
    wallMillis: () => 1_000,
    requestProposal: () => {},
    readIndex: () => undefined,
    leaderChanged: () => {},
  });
  partition.apply(entryOf(1, 1, encodeRules(RULES)));
  partition.statusChanged({ isLeader: true, term: 1, leader: 1 });
  return partition;
}

function ask(partition: Partition, requestId: string): Answer[] {
  const answers: Answer[] = [];
  partition.decide({ userId: 'ada', requestId }, 1_000, (answer) => answers.push(answer));
  return answers;
}

/** Puts the waiting requests into the log at `index`. */
function propose(partition: Partition, index: number, term: number): Entry {
  const data = partition.takeProposal();
  if (data === undefined) throw new Error('something waits');
  const entry = entryOf(index, term, data);
  partition.proposed(entry);
  return entry;
}

describe('a request whose entry a snapshot removed from the log', () => {
  it('is answered, and its retry does not wait for it', () => {
    const partition = leadingPartition();
    const chunks = chunksOf(partition.snapshot());
    const first = ask(partition, 'r-1');
    propose(partition, 10, 1);
    // Another leader's snapshot ends before this node's entry. It replaces the whole log, so the entry is lost.
    partition.statusChanged({ isLeader: false, term: 2, leader: 2 });
    const meta = { index: 5, term: 2, timeMillis: 1_005, voters: [1, 2], chunkCount: 1, byteLength: 1 };
    restoreFrom(partition, { meta, chunks });
    expect(first).toEqual([{ kind: 'unavailable', reason: 'no_leader', proposed: false }]);
    expect(partition.waitingCount).toBe(0);
    // This node leads again, and writes something else to that index.
    partition.statusChanged({ isLeader: true, term: 3, leader: 1 });
    partition.apply({ ...entryOf(6, 3, new Uint8Array(0)), kind: 'noop' });
    const retry = ask(partition, 'r-1');
    partition.apply(propose(partition, 10, 3));
    expect(retry).toMatchObject([{ kind: 'decision', decision: { allowed: true } }]);
    expect(partition.waitingCount).toBe(0);
  });
});
