/**
 * Bugs put into real nodes on purpose: the checkers must catch each of them from what clients see. The simulator's
 * module hook makes the edits while a node loads; the product contains none of this.
 */
import type { Edit } from '../sim/mutants/mutant.ts';

export interface NodeMutant {
  readonly id: string;
  readonly bug: string;
  readonly edits: readonly Edit[];
  /** The nemeses that expose the bug. */
  readonly nemeses: readonly string[];
  readonly minutes: number;
}

export const NODE_MUTANTS: readonly NodeMutant[] = [
  {
    id: 'J1',
    bug: 'acknowledged before it is synced',
    edits: [{ in: 'SYNCED', find: '{ sync: true }', replace: '{ sync: false }' }],
    nemeses: ['power-cut'],
    minutes: 3,
  },
  {
    id: 'J2',
    bug: 'allowed before the entry is committed',
    edits: [
      {
        in: 'Waiters.proposed',
        find: 'this.#inflight.push({ index, term, sinceMillis, queuedMillis, waiters });',
        replace: `for (const waiter of waiters) waiter.done({ kind: 'decision', decision: { allowed: true,
          ruleId: waiter.request.ruleId ?? 'default', limit: 1, windowMillis: 1, remaining: 0, retryAfterMillis: 0,
          resetMillis: 0, decided: { term: entry.term, index: entry.index, timeMillis: entry.timeMillis },
          rulesVersion: 1 } });
        return;`,
      },
    ],
    nemeses: ['kill-one'],
    minutes: 0.5,
  },
  {
    id: 'J3',
    bug: 'grants are forgotten at a failover',
    edits: [
      {
        in: 'LimiterStateMachine.ruleTable',
        find: 'get ruleTable(): RuleTable | undefined {',
        replace: `forgetGrants() {
          for (const keys of this.#state.keyTables) {
            while (keys.size > 0 && keys.evictIfIdle(0, Number.MAX_SAFE_INTEGER));
            keys.evictedThroughMillis = 0;
          }
        }
        get ruleTable(): RuleTable | undefined {`,
      },
      {
        in: 'Partition.statusChanged',
        find: 'if (status.isLeader && !wasLeader)',
        replace: `if (status.isLeader && !wasLeader) this.#machine.forgetGrants();
          if (status.isLeader && !wasLeader)`,
      },
    ],
    nemeses: ['kill-one'],
    minutes: 1,
  },
  {
    id: 'J4',
    bug: 'leaders stamp with their wall clock',
    edits: [
      {
        in: 'GroupClock.nowMillis',
        find: 'return Math.floor(this.#anchor.timeMillis + Math.max(0, elapsed));',
        replace: 'return Math.floor(this.#originMillis());',
      },
    ],
    nemeses: ['wall-clock-jump'],
    minutes: 1,
  },
  {
    id: 'J5',
    bug: 'a lost request is reported as not proposed',
    edits: [
      {
        in: 'LOST',
        find: "reason: 'unknown_outcome', proposed: true",
        replace: "reason: 'unknown_outcome', proposed: false",
      },
      {
        in: 'OpenRequest.overdue',
        find: 'proposed: this.#mayBeProposed || isAsking',
        replace: 'proposed: false',
      },
    ],
    nemeses: ['kill', 'pause'],
    minutes: 1.5,
  },
  {
    id: 'J6',
    bug: 'a leader whose clock is too fast keeps leading',
    edits: [
      {
        in: 'NodeCore.#newClockWatch',
        find: "this.raft.avoidLeading('clockRate', !verdict.fit);",
        replace: '',
      },
    ],
    nemeses: ['fast-clock'],
    minutes: 0.7,
  },
  {
    id: 'J7',
    bug: 'bytes that are not UTF-8 all become the same character',
    edits: [{ in: 'UTF8', find: 'fatal: true', replace: 'fatal: false' }],
    nemeses: ['kill-one'],
    minutes: 0.5,
  },
  {
    id: 'J8',
    bug: 'the number of partitions is not checked: another number in the file is used',
    edits: [
      { in: 'checkIdentity', find: 'if (difference !== undefined)', replace: 'if (false)' },
      { in: 'Admission.refusalOf', find: 'if (hello.facts !== facts) {', replace: 'if (false) {' },
    ],
    nemeses: ['edited-file'],
    minutes: 1,
  },
  {
    id: 'J9',
    bug: 'a snapshot forgets request ids',
    edits: [
      { in: 'StateWriter.#body', find: 'out.integer(this.#memory.size);', replace: 'out.integer(0);' },
      { in: 'StateWriter.#body', find: 'i < this.#memory.size;', replace: 'i < 0;' },
    ],
    nemeses: ['kill'],
    minutes: 1,
  },
  {
    id: 'J10',
    bug: 'reservations are given back even if the request was granted',
    edits: [
      {
        in: 'MatchedRequests.#firstAnswered',
        find: 'isRefused ? isCertain(answer) : isGrant(answer) && answer.isRepeat === true',
        replace: 'true',
      },
    ],
    nemeses: ['kill-one'],
    minutes: 0.5,
  },
  {
    id: 'J11',
    bug: 'a request to a partition does not name the version of the rules that found its limits',
    edits: [{ in: 'requestFor', find: 'matchedBy: version', replace: 'matchedBy: undefined' }],
    nemeses: ['kill-one'],
    minutes: 0.7,
  },
  {
    id: 'J12',
    bug: 'only one unit of a settled cost is charged',
    edits: [
      {
        in: 'Judgement.judgeLimit',
        find: 'this.cost = cost;',
        replace: 'this.cost = isSettled ? 1 : cost;',
      },
    ],
    nemeses: ['kill-one'],
    minutes: 0.7,
  },
  {
    id: 'J13',
    bug: 'a block is acknowledged, but denies nothing',
    edits: [
      {
        in: 'Judgement.isBlocked',
        find: 'return isBlockedAt(this.#record, this.#now);',
        replace: 'return false;',
      },
    ],
    nemeses: ['kill-one'],
    minutes: 0.7,
  },
  {
    id: 'J14',
    bug: 'a backup takes the snapshot of a partition from the disk, even if it is old',
    edits: [
      {
        in: 'MultiRaft.currentSnapshot',
        find: 'target.snapshots.want(index,',
        replace: 'target.snapshots.want(group === 0 ? index : 0,',
      },
    ],
    nemeses: ['kill-one'],
    minutes: 0.7,
  },
  {
    id: 'J15',
    bug: 'a restored cluster does not wait until grants after its backup have left the window',
    edits: [
      {
        in: 'LostHistory.throughMillis',
        find: 'if (this.throughIndex === 0) return 0;',
        replace: 'return 0;',
      },
    ],
    nemeses: ['kill-one'],
    minutes: 0.5,
  },
];
