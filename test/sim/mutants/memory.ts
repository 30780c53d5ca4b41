/** Mutants: memory: which idle users a partition forgets, and how much room the others take. */
import type { Mutant } from './mutant.ts';

export const MEMORY: readonly Mutant[] = [
  {
    id: 'X16',
    bug: 'new users are accepted though there is no room to remember them',
    edits: [
      { in: 'StateSize.hasRoom', find: 'return this.bytes + bytes <= capBytes &&', replace: 'return ' },
    ],
  },
  {
    id: 'X17',
    bug: 'where there is no room, idle keys are not forgotten',
    edits: [{ in: 'Housekeeping.want', find: 'if (this.#isDue) this.#init.requestProposal();', replace: '' }],
    unitTest: {
      file: 'partition/capacity.test.ts',
      why: 'a leader without requests for a second sweeps by itself, so room comes late, but it comes',
    },
  },
  {
    id: 'V1',
    bug: 'a late request is not held back because of forgotten grants',
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
    bug: 'users with late timestamps are forgotten as early as others',
    law: 'a new user at most `LATE_MILLIS` late is not denied',
    edits: [{ in: 'KeyTable.idleFromMillis', find: '(this.eventTimed ? LATE_MILLIS : 0)', replace: '0' }],
  },
  {
    id: 'V3',
    bug: 'forgotten grants are recorded as expired a window too early',
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
    bug: 'a user is forgotten though its grants lie in the future',
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
    bug: 'the time of the newest grant of a user is taken from the timestamp of the caller',
    law: 'a user with timestamps of a far epoch is kept for a day',
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
    bug: 'users with timestamps of a far epoch are forgotten as early as others',
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
    bug: 'a user that moves to another slot loses its grants',
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
      why: 'known users must grow by an eighth of the cap where no new user is accepted, and clients have too few grants left for that by then',
    },
  },
  {
    id: 'P2',
    bug: 'the memory budget of a node is not enforced',
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
    bug: 'a peer that was short of room is spared for ever',
    law: 'nobody refuses for want of room once there is room again',
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
    law: 'a request that finds a queue full is refused',
    edits: [
      {
        in: 'Partition.#reasonNotToPropose',
        find: "return this.#waiters.isFullFor(request, this.#init.options) ? 'overloaded' : undefined;",
        replace: 'return undefined;',
      },
    ],
    unitTest: {
      file: 'partition/bounds.test.ts',
      why: 'a node accepts 32,768 waiting requests for a partition, which is more than any world asks in a run',
    },
  },
  {
    id: 'P5',
    bug: 'requests that were decided still count as waiting in the log',
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
    bug: 'a node that leads again goes by the commit times of its earlier leadership',
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
      why: 'one world in a thousand: a leadership must end after eight commits that took longer than the deadline, and come back in health',
    },
  },
  {
    id: 'H2',
    bug: 'a snapshot drops the record of evicted keys, and so does the hash of its writer',
    law: 'the state is the one that the log leads to',
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
    bug: 'a key that was forgotten may be granted again at timestamps before it was forgotten',
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
    bug: 'a key that is known from timestamps of a far epoch counts as known in the near one, too',
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
    bug: 'a user whose timestamps leave a far epoch is forgotten at once, as if it had never been there',
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
    bug: 'a rule that was dropped and comes back begins as if it had never granted anything',
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
    bug: 'a snapshot forgets until when grants of dropped rules count',
    law: 'the state is the one that the log leads to',
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
    bug: 'waiting refunds have no bound of their own',
    law: 'a request that finds a queue full is refused',
    edits: [{ in: 'Waiters.isFullFor', find: "ask === 'refund' &&", replace: 'false &&' }],
    unitTest: {
      file: 'partition/refunds.test.ts',
      why: 'no world has hundreds of refunds waiting for one partition',
    },
  },
  {
    id: 'P7',
    bug: 'one turn applies all committed refunds, however many',
    law: 'no turn takes longer than its slice',
    edits: [{ in: 'applyCommitted', find: 'if (slow !== -1) entries.splice(slow + 1);', replace: '' }],
    unitTest: {
      file: 'raft/driver/group-commit.test.ts',
      why: 'in the simulator work takes no time',
    },
  },
  {
    id: 'X19',
    bug: 'changes by operators find no room once requests have taken all of it',
    law: 'operators have room of their own',
    edits: [
      { in: 'StateSize.hasRoomForOperators', find: '2 * Math.floor(capBytes / RESERVE_PARTS)', replace: '0' },
    ],
    unitTest: {
      file: 'limiter/capacity.test.ts',
      why: 'requests would have to fill a world, and an operator then set a key that has no record',
    },
  },
  {
    id: 'X20',
    bug: 'a partition that gets no requests any more keeps its last keys for ever',
    law: 'a cluster at rest frees the memory of idle keys',
    edits: [{ in: 'CapacityWatch.tick', find: 'this.#searchIdle();', replace: '' }],
    unitTest: {
      file: 'partition/capacity-watch.test.ts',
      why: 'no law of the simulator says how long idle keys may be kept where there is room',
    },
  },
  {
    id: 'X21',
    bug: 'a leader wakes its group for sweeps though all keys are in use',
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
