/** Mutants: UTC as the logs know it, and the windows that follow it. */
import type { Mutant } from './mutant.ts';

export const UTC: readonly Mutant[] = [
  {
    id: 'UT1',
    bug: 'the wall clock that is furthest ahead is believed',
    law: 'no log is at a later time than two wall clocks have shown',
    faults: ['wallJump'],
    edits: [{ in: 'WallClocks.utcMillis', find: '[Math.floor(nodes.length / 2)]', replace: '[0]' }],
  },
  {
    id: 'UT2',
    bug: 'when UTC steps forward, grants made before the step are freed too early',
    law: 'a grant counts until its window would have ended',
    edits: [
      {
        in: 'FixedWindows.#endOf',
        find: 'isEvent ? endMillis : endMillis +',
        replace: 't >= 0 || isEvent ? endMillis : endMillis +',
      },
    ],
    unitTest: {
      file: 'limiter/utc.test.ts',
      why: 'in one short window a key would have to get one grant just before an outage and another just after it',
    },
  },
  {
    id: 'UT3',
    bug: 'the first grant after a step of UTC forgets the grants before the step',
    law: 'a grant counts until its window would have ended',
    edits: [
      {
        in: 'FixedWindows.grant',
        find: 'this.#carry(slot, rule, count, carried);',
        replace: 'this.#setCarried(slot, 0, 0);',
      },
    ],
    unitTest: {
      file: 'limiter/utc.test.ts',
      why: 'in one short window a key would have to get one grant just before an outage and another just after it',
    },
  },
  {
    id: 'UT4',
    bug: 'no log learns how far UTC is ahead of it',
    law: 'after an outage each log soon catches up with the wall clocks of a majority',
    edits: [
      { in: 'Partition.followUtc', find: 'this.#isLeader && this.#canDecide', replace: '!this.#isLeader' },
    ],
  },
  {
    id: 'UT5',
    bug: 'a snapshot forgets how far UTC is ahead of group time',
    law: 'replicas that applied the same entries have equal states',
    edits: [{ in: 'StateReader.#readUtcSteps', find: 'this.#state.utc.restore(steps);', replace: '' }],
  },
  {
    id: 'UT6',
    bug: 'UTC goes back when wall clocks go back',
    law: 'a window that has ended does not begin again',
    edits: [
      {
        in: 'UtcSteps.step',
        find: 'if (aheadMillis <= this.aheadMillis) return false;',
        replace: 'if (aheadMillis === this.aheadMillis) return false;',
      },
    ],
    unitTest: {
      file: 'limiter/utc.test.ts',
      why: 'no leader proposes that: the entry of a deposed leader would have to come after that of its successor',
    },
  },
  {
    id: 'UT7',
    bug: 'after a step of UTC within a window, grants carried over from other windows count until this window ends',
    law: 'a step of UTC makes carried grants count longer by the length of the step, never by a window',
    edits: [
      {
        in: 'FixedWindows.grant',
        find: 'isSameWindow && isOfOther',
        replace: 'isSameWindow && isOfOther && t < 0',
      },
    ],
    unitTest: {
      file: 'limiter/utc.test.ts',
      why: 'two steps of UTC would have to come within one short window, with a grant between them',
    },
  },
  {
    id: 'UT8',
    bug: 'keys are kept longer by as much as UTC is ahead',
    law: 'all replicas forget the same keys, once nothing of them counts',
    edits: [
      {
        in: 'KeyTable.idleFromMillis',
        find: 'this.meter.idleAtMillis(slot, windowMillis, rule) - this.aheadMillis;',
        replace: 'this.meter.idleAtMillis(slot, windowMillis, rule);',
      },
    ],
  },
  {
    id: 'UT9',
    bug: 'usage that an operator sets counts in the window of group time, not of UTC',
    law: 'usage that an operator sets counts as granted now',
    edits: [{ in: 'setUsed', find: 'applied.timeMillis + keys.aheadMillis', replace: 'applied.timeMillis' }],
    unitTest: {
      file: 'limiter/utc.test.ts',
      why: 'an operator would have to set the usage of a key with a fixed window after an outage',
    },
  },
  {
    id: 'UT10',
    bug: 'when a rule changes its meter, its old grants are read at the time of the new meter',
    law: 'a grant counts until it expires',
    edits: [{ in: 'millisBetween', find: 'isEvent ? 0 : to.aheadMillis - from.aheadMillis', replace: '0' }],
    unitTest: {
      file: 'limiter/utc.test.ts',
      why: 'a rule would have to change its meter just after an outage, while its old grants still count',
    },
  },
  {
    id: 'UT11',
    bug: 'an unknown key is denied until group time is where UTC was',
    law: 'nobody is denied for a forgotten grant that has expired',
    edits: [
      {
        in: 'KeyTable.forget',
        find: 'this.meter.idleAtMillis(slot, windowMillis, rule) - this.aheadMillis;',
        replace: 'this.meter.idleAtMillis(slot, windowMillis, rule);',
      },
    ],
  },
  {
    id: 'UT12',
    bug: 'the wall clock that a peer reported is believed for ever',
    law: 'a report that is ten seconds old does not count any more',
    edits: [
      {
        in: 'WallClocks.utcMillis',
        find: '&& nowMillis - heard.heardMillis <= HEARD_MILLIS',
        replace: '',
      },
    ],
    unitTest: {
      file: 'clock/wall-clocks.test.ts',
      why: 'in the simulator a wall clock that is set back was the only one ahead',
    },
  },
  {
    id: 'UT13',
    bug: 'requests with timestamps of their own are held back after an outage, too',
    law: 'timestamps of callers are UTC',
    edits: [{ in: 'FixedWindows.#endOf', find: 'isEvent ? endMillis :', replace: '' }],
    unitTest: {
      file: 'limiter/utc.test.ts',
      why: 'a user with timestamps would have to ask just after an outage, within one short window',
    },
  },
  {
    id: 'UT14',
    bug: 'steps of UTC are forgotten by the time they skipped, not by the time that passed since',
    law: 'a grant counts until its window would have ended',
    edits: [
      {
        in: 'UtcSteps.#isOver',
        find: 'second.fromMillis - first!.aheadMillis',
        replace: 'second.fromMillis - this.aheadMillis',
      },
    ],
    unitTest: { file: 'limiter/utc.test.ts', why: 'no world lasts for months' },
  },
];
