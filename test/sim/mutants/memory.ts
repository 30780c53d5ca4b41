/** Mutants: what a partition forgets of idle users, and the room that what it remembers takes. */
import type { Mutant } from './mutant.ts';

export const MEMORY: readonly Mutant[] = [
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
    edits: [{ in: 'Housekeeping.want', find: 'if (this.#isDue) this.#init.requestProposal();', replace: '' }],
    unitTest: {
      file: 'partition/capacity.test.ts',
      why: 'a leader that is asked nothing for a second sweeps of itself, so that room comes late and not never',
    },
  },
  {
    id: 'V1',
    bug: 'who comes late does not meet what was forgotten',
    law: 'no window over its limit for late timestamps',
    edits: [
      {
        in: 'KeyTable.forgottenMillis',
        find: 'return isKnown || this.evictedThroughMillis === 0 ? 0 : this.evictedThroughMillis + this.aheadMillis;',
        replace: 'return 0;',
      },
    ],
  },
  {
    id: 'V2',
    bug: 'users of late callers are forgotten as early as others',
    law: 'a new user at most `LATE_MILLIS` late is not denied',
    edits: [{ in: 'KeyTable.idleFromMillis', find: '(this.eventTimed ? LATE_MILLIS : 0)', replace: '0' }],
  },
  {
    id: 'V3',
    bug: 'what was forgotten is remembered to be out a window too early',
    law: 'no window over its limit for late timestamps',
    edits: [
      {
        in: 'KeyTable.forget',
        find: 'const goneMillis = this.meter.idleAtMillis(slot, windowMillis, rule) - this.aheadMillis;',
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
        in: 'KeyTable.idleFromMillis',
        find: 'this.meter.idleAtMillis(slot, windowMillis, rule)',
        replace: '0',
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
        in: 'KeyTable.idleFromMillis',
        find: 'madeMillis + Math.max(FAR_EPOCH_HORIZON_MILLIS, reachMillis)',
        replace: 'madeMillis + this.effectiveWindowMillis',
      },
    ],
  },
  {
    id: 'V7',
    bug: 'a user that moves to another slot is forgotten',
    law: 'no window over its limit in log time',
    edits: [
      {
        in: 'SlidingLogs.remove',
        find: 'this.#rows.copy(last, slot);',
        replace: 'this.#rows.copy(last, slot); row[at + COUNT] = 0;',
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
    unitTest: {
      file: 'limiter/capacity.test.ts',
      why: 'known users must grow by an eighth of the cap where no new one is taken in, and clients have too few grants left for that by then',
    },
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
        find: "return this.#waiters.isFullFor(request, this.#init.options) ? 'overloaded' : undefined;",
        replace: 'return undefined;',
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
        find: 'this.#forget(inflight);',
        replace: 'this.#inflight = this.#inflight.filter((one) => one !== inflight);',
      },
    ],
    unitTest: {
      file: 'partition/bounds.test.ts',
      why: 'it shows after 65,536 requests of one partition: more than any world asks',
    },
  },
  {
    id: 'P8',
    bug: 'who leads anew believes how long commits took before',
    law: 'in health every request is decided',
    edits: [
      {
        in: 'CommitTimes.leads',
        find: 'this.#millis.length = 0;',
        replace: 'this.#millis.length += 0;',
      },
    ],
    unitTest: {
      file: 'partition/bounds.test.ts',
      why: 'one world in a thousand: a lead must end behind eight commits that took longer than the deadline, and come back in health',
    },
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
    features: ['timestamps', 'strangeTimes', 'idleness'],
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
  {
    id: 'V10',
    bug: 'a rule that was dropped, and comes back, begins as if it had never granted anything',
    law: 'no window over its limit for late timestamps',
    edits: [
      {
        in: 'tablesUnder',
        find: 'keys.evictedThroughMillis = state.droppedThroughMillis;',
        replace: '',
      },
    ],
    unitTest: {
      file: 'limiter/emptied-rules.test.ts',
      why: 'hundreds of rules must come and go before one is dropped, and a cluster of the simulator has two',
    },
  },
  {
    id: 'V11',
    bug: 'a snapshot does not tell from when on nothing counts of what dropped rules granted',
    law: 'states found by lookups are those that the log leads to',
    edits: [
      {
        in: 'StateWriter.#body',
        find: 'out.integer(this.#droppedThroughMillis);',
        replace: 'out.integer(0);',
      },
    ],
    unitTest: {
      file: 'limiter/emptied-rules.test.ts',
      why: 'hundreds of rules must come and go before one is dropped, and a cluster of the simulator has two',
    },
  },
  {
    id: 'P6',
    bug: 'refunds wait without a bound of their own',
    law: 'who finds a queue full is refused',
    edits: [{ in: 'Waiters.isFullFor', find: "ask === 'refund' &&", replace: 'false &&' }],
    unitTest: {
      file: 'partition/refunds.test.ts',
      why: 'no world has hundreds of refunds waiting for one partition',
    },
  },
  {
    id: 'P7',
    bug: 'a turn applies as many entries of refunds as are committed',
    law: 'no turn works longer than a slice',
    edits: [{ in: 'applyCommitted', find: 'if (slow !== -1) entries.splice(slow + 1);', replace: '' }],
    unitTest: {
      file: 'raft/driver/group-commit.test.ts',
      why: 'time in the simulator does not pass by working',
    },
  },
  {
    id: 'X19',
    bug: 'what operators say finds no room where requests have taken all of it',
    law: 'operators have room of their own',
    edits: [
      { in: 'StateSize.hasRoomForOperators', find: '2 * Math.floor(capBytes / RESERVE_PARTS)', replace: '0' },
    ],
    unitTest: {
      file: 'limiter/capacity.test.ts',
      why: 'a world must be filled by requests, and then be told of a key that has no record',
    },
  },
  {
    id: 'X20',
    bug: 'a partition that nobody asks any more remembers its last keys for good',
    law: 'a cluster at rest gives back what it remembers of idle keys',
    edits: [{ in: 'CapacityWatch.tick', find: 'this.#searchIdle();', replace: '' }],
    unitTest: {
      file: 'partition/capacity-watch.test.ts',
      why: 'no law of the simulator says how long idle keys may be remembered where there is room',
    },
  },
  {
    id: 'X21',
    bug: 'a leader wakes its group for sweeps though all keys are live',
    law: 'a cluster at rest stays at rest',
    edits: [
      { in: 'IdleSweeps.#surveyed', find: 'if (worthMillis > nowMillis) return;', replace: '' },
      { in: 'IdleSweeps.#surveyed', find: 'this.#due = dueCount;', replace: 'this.#due = 1;' },
    ],
    unitTest: {
      file: 'partition/idle-sweeps.test.ts',
      why: 'a sweep that forgets nothing changes no answer',
    },
  },
];
