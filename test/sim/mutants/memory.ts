/** Mutants: what a partition remembers and forgets: request ids, idle users, and the room they take. */
import type { Mutant } from './mutant.ts';

export const MEMORY: readonly Mutant[] = [
  {
    id: 'M15',
    bug: 'a remembered request id is not found again',
    edits: [
      {
        in: 'RequestMemory.find',
        find: 'return id !== NONE && this.view(id).expiresMillis >= nowMillis ? id : NONE;',
        replace: 'return NONE;',
      },
    ],
  },
  {
    id: 'X12',
    bug: 'a remembered request id is answered whatever is asked under it',
    edits: [
      {
        in: 'conflictBetween',
        find: 'of CONFLICT_FIELDS',
        replace: "of ['rule'] as const",
      },
    ],
  },
  {
    id: 'X12c',
    bug: 'another request under the id of one in flight joins it',
    edits: [
      {
        in: 'Waiters.maybeJoin',
        find: 'const conflict = conflictBetween(questionOf(earlier.request), questionOf(request));',
        replace: 'const conflict = undefined;',
      },
    ],
  },
  {
    id: 'X16',
    bug: 'new users are taken though there is no room to remember them',
    edits: [
      { in: 'StateSize.hasRoom', find: 'return this.bytes + bytes <= capBytes &&', replace: 'return ' },
    ],
  },
  {
    id: 'X17',
    bug: 'where there is no room nobody forgets what is idle',
    edits: [{ in: 'Housekeeping.want', find: 'return this.#isDue;', replace: 'return false;' }],
  },
  {
    id: 'V1',
    bug: 'who comes late does not meet what was forgotten',
    law: 'no window over its limit for late timestamps',
    edits: [
      {
        in: 'KeyTable.forgottenMillis',
        find: 'return isKnown ? 0 : this.evictedThroughMillis;',
        replace: 'return 0;',
      },
    ],
  },
  {
    id: 'V2',
    bug: 'users of late callers are forgotten as early as others',
    law: 'a new user at most `LATE_MILLIS` late is not denied',
    edits: [{ in: 'KeyTable.evictIfIdle', find: '(this.eventTimed ? LATE_MILLIS : 0)', replace: '0' }],
  },
  {
    id: 'V3',
    bug: 'what was forgotten is remembered to be out a window too early',
    law: 'no window over its limit for late timestamps',
    edits: [
      {
        in: 'KeyTable.forget',
        find: 'const goneMillis = this.meter.idleAtMillis(slot, this.effectiveWindowMillis);',
        replace: 'const goneMillis = this.meter.newestMillis(slot);',
      },
    ],
  },
  {
    id: 'V4',
    bug: 'a user is forgotten by when it was granted, though its grants lie in the future',
    law: 'no window over its limit for early timestamps',
    edits: [
      {
        in: 'KeyTable.evictIfIdle',
        find: 'Math.max(this.meter.idleAtMillis(slot, windowMillis), madeMillis + windowMillis)',
        replace: 'madeMillis + windowMillis',
      },
    ],
  },
  {
    id: 'V5',
    bug: 'when a user was granted last is taken from the timestamp of the caller',
    law: 'a user of a far epoch is kept for a day',
    edits: [
      {
        in: 'KeyTable.grant',
        find: ': groupMillis;',
        replace: ': t;',
      },
    ],
  },
  {
    id: 'V6',
    bug: 'users of a far epoch are forgotten like others',
    law: 'no window over its limit in the time of the caller',
    edits: [
      {
        in: 'KeyTable.evictIfIdle',
        find: 'madeMillis + this.#farHorizonMillis > groupMillis',
        replace: 'madeMillis + this.effectiveWindowMillis > groupMillis',
      },
    ],
  },
  {
    id: 'V7',
    bug: 'a user that moves to another slot is forgotten',
    law: 'no window over its limit in log time',
    edits: [
      {
        in: 'KeyTable.forget',
        find: 'this.meter.remove(slot);',
        replace: 'this.meter.remove(this.meter.size - 1);',
      },
    ],
  },
  {
    id: 'P1',
    bug: 'known users may fill the memory without end',
    law: 'no state grows beyond its cap',
    edits: [
      {
        in: 'StateSize.hasRoom',
        find: 'return this.bytes + bytes <= capBytes + Math.floor(capBytes / RESERVE_PARTS);',
        replace: 'return true;',
      },
    ],
  },
  {
    id: 'P2',
    bug: 'the budget of a node is not enforced',
    law: 'a node does not outgrow its budget',
    edits: [
      { in: 'LimiterState.hasRoomFor', find: "if (room === 'full' && isNew) return false;", replace: '' },
      {
        in: 'LimiterState.hasRoomFor',
        find: "if (room === 'exhausted' && bytes > 0) return false;",
        replace: '',
      },
    ],
  },
  {
    id: 'P3',
    bug: 'a peer that is short of room is spared for ever',
    law: 'none refuses for want of room when there is room again',
    edits: [
      {
        in: 'PeerRooms.heard',
        find: "if (room === 'free') this.#heard.delete(from);",
        replace: "if (room === 'free') return;",
      },
      { in: 'PeerRooms.isAnyShort', find: 'nowMillis - atMillis > HEARD_MILLIS_MAX', replace: 'false' },
    ],
  },
  {
    id: 'P4',
    bug: 'the queue of requests has no bound',
    law: 'who finds a queue full is refused',
    edits: [
      {
        in: 'Partition.#reasonNotToPropose',
        find: "isFull ? 'overloaded' : undefined",
        replace: 'undefined',
      },
    ],
    unitTest: {
      file: 'partition/bounds.test.ts',
      why: 'a node takes 32,768 waiting requests for a partition: more than any world asks in a run',
    },
  },
  {
    id: 'P5',
    bug: 'requests that were decided still count as in the log',
    law: 'in health every request is decided',
    edits: [
      {
        in: 'Waiters.leave',
        find: 'this.#forget(index, inflight);',
        replace: 'this.#inflight.delete(index);',
      },
    ],
    unitTest: {
      file: 'partition/bounds.test.ts',
      why: 'it shows after 65,536 requests of one partition: more than any world asks',
    },
  },
  {
    id: 'Q1',
    bug: 'a request id is forgotten a millisecond early',
    law: 'while a grant is remembered its request gets the same receipt',
    edits: [
      { in: 'RequestMemory.find', find: 'expiresMillis >= nowMillis', replace: 'expiresMillis > nowMillis' },
    ],
  },
  {
    id: 'Q2',
    bug: 'how long a request id is remembered counts from the timestamp of the caller',
    law: 'while a grant is remembered its request gets the same receipt',
    edits: [
      {
        in: 'LimiterState.remember',
        find: 'this.applied.timeMillis +',
        replace: 'decision.decided.timeMillis +',
      },
    ],
  },
  {
    id: 'Q3',
    bug: 'request ids of all users are one',
    law: 'a request id is one of its user',
    edits: [
      { in: 'RequestKey.set', find: 'this.text.append(userId)', replace: "this.text.append('anybody')" },
    ],
  },
  {
    id: 'Q4',
    bug: 'of a request id that was granted twice the older grant is found',
    law: 'while a grant is remembered its request gets the same receipt',
    edits: [
      {
        in: 'RequestMemory.remember',
        find: 'if (superseded !== NONE) this.#takeOut(superseded);',
        replace: '',
      },
    ],
  },
  {
    id: 'Q5',
    bug: 'the receipt of a repeated request names the first place of its entry',
    law: 'a repeated request gets the identical answer',
    edits: [{ in: 'GrantView.record', find: 'decided.position ?? 0', replace: '0' }],
  },
  {
    id: 'Q6',
    bug: 'a repeated request is told another wait',
    law: 'a repeated request gets the identical answer',
    edits: [
      {
        in: 'GrantView.record',
        find: 'decision.retryAfterMillis',
        replace: 'decision.resetMillis',
      },
    ],
  },
  {
    id: 'Q7',
    bug: 'another timestamp under a request id is taken for a retry',
    law: 'another request under the id is refused',
    edits: [
      {
        in: 'conflictBetween',
        find: 'of CONFLICT_FIELDS',
        replace: "of ['rule', 'cost'] as const",
      },
    ],
  },
  {
    id: 'Q8',
    bug: 'a retry without a rule is taken for another request',
    law: 'a retry is no conflict',
    edits: [{ in: 'GrantView.record', find: 'if (asked.ruleId !== DEFAULT_RULE)', replace: '' }],
  },
  {
    id: 'Q9',
    bug: 'retries join attempts that were answered long ago',
    law: 'every request is answered before its deadline, in health decided',
    edits: [
      {
        in: 'Attempts.delete',
        find: 'if (retryKey !== undefined && this.#byKey.get(retryKey) === attempt) this.#byKey.delete(retryKey);',
        replace: '',
      },
    ],
  },
  {
    id: 'Q10',
    bug: 'in an idle group request ids are remembered beyond their horizon',
    law: 'what is not remembered any more is judged anew',
    edits: [
      {
        in: 'LimiterStateMachine.remembered',
        find: 'const now = Math.max(nowMillis, applied.timeMillis);',
        replace: 'const now = applied.timeMillis;',
      },
    ],
  },
  {
    id: 'Q11',
    bug: 'request ids leave the memory at their last millisecond, though they still count',
    law: 'while a grant is remembered its request gets the same receipt',
    edits: [
      {
        in: 'RequestMemory.expire',
        find: 'if (view.expiresMillis >= nowMillis) return;',
        replace: 'if (view.expiresMillis > nowMillis) return;',
      },
    ],
  },
  {
    id: 'H2',
    bug: 'a snapshot drops what eviction remembers, and the hash of its writer does too',
    law: 'states found by lookups are those that the log leads to',
    edits: [
      {
        in: 'StateWriter.#writeTable',
        find: 'out.integer(table.evictedThroughMillis);',
        replace: 'out.integer(0);',
      },
    ],
  },
  {
    id: 'N2',
    bug: 'a repeated request id is told less than the first was',
    law: 'a repeated id gets the identical answer',
    edits: [
      {
        in: 'GrantView.record',
        find: 'words[at + REMAINING] = decision.remaining;',
        replace: 'words[at + REMAINING] = 0;',
      },
    ],
  },
  {
    id: 'N3',
    bug: 'a key that was forgotten may be granted its past again, in event time',
    law: 'every decision is that of the naive limiter',
    edits: [
      {
        in: 'KeyTable.forget',
        find: 'this.evictedThroughMillis = Math.max(this.evictedThroughMillis, goneMillis);',
        replace: '',
      },
    ],
  },
  {
    id: 'V8',
    bug: 'a key that is known from a far epoch counts as known in the near one',
    law: 'no window over its limit, from whichever epoch timestamps come',
    edits: [
      {
        in: 'KeyTable.forgottenMillis',
        find: 'newestMillis >= this.#nearEpochMillis',
        replace: 'newestMillis !== -Infinity',
      },
    ],
  },
  {
    id: 'V9',
    bug: 'a user that leaves a far epoch is forgotten as if it had never been there',
    law: 'no window over its limit in the time of the caller',
    edits: [
      {
        in: 'KeyTable.grant',
        find: 'leavesFarEpoch ? groupMillis + this.#farHorizonMillis : groupMillis',
        replace: 'groupMillis',
      },
    ],
  },
];
