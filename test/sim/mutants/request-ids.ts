/** Mutants: request ids: what is remembered under them, for how long, and how a repeated request is answered. */
import type { Mutant } from './mutant.ts';

export const REQUEST_IDS: readonly Mutant[] = [
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
    bug: 'a remembered request id is answered even if the request is a different one',
    edits: [
      {
        in: 'conflictBetween',
        find: 'of FIELDS',
        replace: "of ['rule'] as const",
      },
    ],
  },
  {
    id: 'X12c',
    bug: 'a different request with the id of one in flight joins it',
    edits: [
      {
        in: 'Waiters.maybeJoin',
        find: 'const conflict = conflictBetween(questionOf(earlier.request), questionOf(request));',
        replace: 'const conflict = undefined;',
      },
    ],
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
    bug: 'the time for which a request id is remembered counts from the timestamp of the caller',
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
    bug: 'all users share their request ids',
    law: 'a request id belongs to its user',
    edits: [
      { in: 'RequestKey.set', find: 'this.text.append(userId)', replace: "this.text.append('anybody')" },
    ],
  },
  {
    id: 'Q4',
    bug: 'the older grant is found under a request id that was granted twice',
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
    bug: 'the receipt of a repeated request names the first position in its entry',
    law: 'a repeated request gets the identical answer',
    edits: [{ in: 'GrantView.record', find: 'decided.position ?? 0', replace: '0' }],
  },
  {
    id: 'Q6',
    bug: 'a repeated request is answered with another wait',
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
    bug: 'a request that differs only in its timestamp is taken for a retry',
    law: 'a different request under the id is refused',
    edits: [
      {
        in: 'conflictBetween',
        find: 'of FIELDS',
        replace: "of ['rule', 'cost'] as const",
      },
    ],
  },
  {
    id: 'Q8',
    bug: 'a retry without a rule is taken for a different request',
    law: 'a retry is no conflict',
    edits: [{ in: 'GrantView.record', find: 'if (asked.ruleId !== DEFAULT_RULE)', replace: '' }],
  },
  {
    id: 'Q9',
    bug: 'retries join attempts that were answered long ago',
    law: 'every request is answered before its deadline; in health it is decided',
    edits: [
      {
        in: 'RetryIndex.delete',
        find: 'if (retryKey !== undefined && this.#byKey.get(retryKey) === waiting) this.#byKey.delete(retryKey);',
        replace: '',
      },
    ],
  },
  {
    id: 'Q10',
    bug: 'a retry is checked against the current rules before the log is asked what it granted',
    law: 'a repeated request gets the identical answer',
    edits: [
      {
        in: 'Partition.#rejectionAtOnce',
        find: 'if (this.#machine.isRemembered(request)) return undefined;',
        replace: '',
      },
    ],
    unitTest: {
      file: 'partition/retries.test.ts',
      why: 'clients of the simulator do not distinguish a rule that was removed from one that never existed: both are refused as invalid',
    },
  },
  {
    id: 'Q11',
    bug: 'request ids are dropped in their last millisecond, in which they still count',
    law: 'while a grant is remembered its request gets the same receipt',
    edits: [
      {
        in: 'RequestMemory.expiredFromMillis',
        find: 'view.expiresMillis + 1',
        replace: 'view.expiresMillis',
      },
    ],
  },
  {
    id: 'N2',
    bug: 'the answer to a repeated request id says that nothing remains',
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
    id: 'Q20',
    bug: 'a repeated refund gives the cost back once more',
    law: 'grants minus refunds are at most the limit',
    edits: [{ in: 'LimiterState.refund', find: 'if (grant.isRefunded) return grant;', replace: '' }],
  },
  {
    id: 'Q21',
    bug: 'a snapshot forgets that a grant was refunded',
    law: 'replicas at the same index are equal',
    edits: [
      {
        in: 'GrantView.readFrom',
        find: "if (input.flag('refunded')) this.refund();",
        replace: "input.flag('refunded');",
      },
    ],
  },
  {
    id: 'Q22',
    bug: 'a snapshot contains refunds that came while it was written',
    law: 'a snapshot is the state at its index',
    edits: [{ in: 'CapturedMemory.open', find: 'this.#isRefundedSince(this.#next)', replace: 'false' }],
    unitTest: {
      file: 'limiter/refunds.test.ts',
      why: 'few states of the simulator have more than one chunk, and a grant must be refunded between two of them',
    },
  },
  {
    id: 'Q23',
    bug: 'a retry of a refunded request gets its old grant',
    law: 'a refunded grant is given to nobody',
    edits: [{ in: 'Judgement.answer', find: '&& !grant.isRefunded', replace: '' }],
  },
  {
    id: 'Q25',
    bug: 'a retry joins an attempt that is already in the log, where another leader may refund it',
    law: 'a refunded grant is given to no later request',
    edits: [{ in: 'Waiters.takeBatch', find: 'this.#retryIndex.delete(waiter);', replace: '' }],
    unitTest: {
      file: 'partition/refunds.test.ts',
      why: 'another leader must commit the entry, refund it and answer, and this node must hear of it only after the retry came',
    },
  },
  {
    id: 'Q26',
    bug: 'the refund of the newest grant sets the time of its key back to the grant before, even to before group time',
    law: 'no window over its limit in the time of callers',
    edits: [
      {
        in: 'SlidingLogs.#takeBackNewest',
        find: 'if (newest > 0 && log.millis(newest - 1) >= millis)',
        replace: 'if (newest > 0)',
      },
    ],
  },
  {
    id: 'Q30',
    bug: 'a refunded grant with a stamp ahead of group time still holds its key back',
    law: 'a denied request leaves no trace',
    edits: [{ in: 'SlidingLogs.refund', find: 'Math.min(timeMillis, nowMillis)', replace: 'timeMillis' }],
  },
  {
    id: 'Q33',
    bug: 'a grant ahead of group time makes its key forget grants that count again after a refund',
    law: 'no window over its limit in group time',
    edits: [
      {
        in: 'Judgement.keptMillis',
        find: '+ Math.min(Math.max(0, this.t - this.#now), AHEAD_MILLIS_MAX)',
        replace: '',
      },
    ],
  },
  {
    id: 'Q34',
    bug: 'a run of grants that was refunded completely still takes room',
    law: 'a refunded grant takes no room',
    edits: [
      {
        in: 'SlidingLogs.refund',
        find: 'else if (run < log.count - 1) log.removeRun(run);',
        replace: `else if (run < log.count - 1) {
          if (log.form === NARROW) this.#resize(slot, log, log.count, WIDE);
          log.takeFrom(run, spent);
        }`,
      },
    ],
  },
  {
    id: 'Q31',
    bug: 'a timestamp of 0 is remembered as none, so its retry is taken for a different request',
    law: 'a retry gets the answer of its grant',
    edits: [
      {
        in: 'GrantView.record',
        find: 'askedDigest ?? (timestampMillis === undefined ? 0 : timestampMillis + 1)',
        replace: 'askedDigest ?? (timestampMillis ? timestampMillis + 1 : 0)',
      },
    ],
    unitTest: {
      file: 'limiter/request-ids.test.ts',
      why: 'no caller of the simulator uses a timestamp of 0',
    },
  },
  {
    id: 'Q32',
    bug: 'a request with descriptors gets the grant of one with the same id and another cost',
    law: 'every grant is charged',
    edits: [
      {
        in: 'askedDigest',
        find: '[said, rule ?? null, cost, timestampMillis ?? null]',
        replace: '[said, rule ?? null, timestampMillis ?? null]',
      },
    ],
    unitTest: {
      file: 'matching/matched-requests.test.ts',
      why: 'an id that is used again comes with newly drawn descriptors, hardly ever with the same ones and another cost',
    },
  },
];
