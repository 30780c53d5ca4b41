/** Mutants: how late it is in UTC, and what goes by it. */
import type { Mutant } from './mutant.ts';

export const UTC: readonly Mutant[] = [
  {
    id: 'UT1',
    bug: 'the wall clock that is furthest is believed',
    law: 'no log is later than two wall clocks have been',
    faults: ['wallJump'],
    edits: [{ in: 'WallClocks.utcMillis', find: '[Math.floor(nodes.length / 2)]', replace: '[0]' }],
  },
  {
    id: 'UT2',
    bug: 'what was granted before a step of UTC is freed by it',
    law: 'nothing is freed before its window would have ended',
    edits: [
      {
        in: 'FixedWindows.#endOf',
        find: 'isEvent ? endMillis : endMillis +',
        replace: 't >= 0 || isEvent ? endMillis : endMillis +',
      },
    ],
    unitTest: {
      file: 'limiter/utc.test.ts',
      why: 'a key would have to be granted something just before an outage, and again just after, in one short window',
    },
  },
  {
    id: 'UT3',
    bug: 'the first grant after a step forgets what was granted before it',
    law: 'nothing is freed before its window would have ended',
    edits: [
      {
        in: 'FixedWindows.grant',
        find: 'this.#carry(slot, rule, count, carried);',
        replace: 'this.#setCarried(slot, 0, 0);',
      },
    ],
    unitTest: {
      file: 'limiter/utc.test.ts',
      why: 'a key would have to be granted something just before an outage, and again just after, in one short window',
    },
  },
  {
    id: 'UT4',
    bug: 'no log is told how late it is',
    law: 'soon the log is as late as a majority of wall clocks',
    edits: [
      { in: 'Partition.followUtc', find: 'this.#isLeader && this.#canDecide', replace: '!this.#isLeader' },
    ],
  },
  {
    id: 'UT5',
    bug: 'a snapshot forgets how late it is',
    law: 'equal on all replicas that applied the same entries',
    edits: [{ in: 'StateReader.#readUtcSteps', find: 'this.#state.utc.restore(steps);', replace: '' }],
  },
  {
    id: 'UT6',
    bug: 'UTC runs back with the wall clocks',
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
      why: 'no leader asks for it: the entry of one that was deposed would have to come after that of its successor',
    },
  },
  {
    id: 'UT7',
    bug: 'what other windows left is held for all of this one, if there is a step in it',
    law: 'what steps carry counts longer by what was stepped, never by a window',
    edits: [
      {
        in: 'FixedWindows.grant',
        find: 'isSameWindow && isOfOther',
        replace: 'isSameWindow && isOfOther && t < 0',
      },
    ],
    unitTest: {
      file: 'limiter/utc.test.ts',
      why: 'two steps would have to come within one short window, and a grant between them',
    },
  },
  {
    id: 'UT8',
    bug: 'keys are kept as much longer as UTC is ahead',
    law: 'all replicas forget the same keys, when nothing of them counts',
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
    bug: 'what an operator sets counts in the window of group time',
    law: 'a set key counts as granted now',
    edits: [{ in: 'setUsed', find: 'applied.timeMillis + keys.aheadMillis', replace: 'applied.timeMillis' }],
    unitTest: {
      file: 'limiter/utc.test.ts',
      why: 'operators would have to set a key of a fixed window after an outage',
    },
  },
  {
    id: 'UT10',
    bug: 'a rule that changed its meter looks for its grants at the time of the new one',
    law: 'what was granted counts until it is out',
    edits: [{ in: 'millisBetween', find: 'isEvent ? 0 : to.aheadMillis - from.aheadMillis', replace: '0' }],
    unitTest: {
      file: 'limiter/utc.test.ts',
      why: 'a rule would have to change its meter just after an outage, while what it granted before counts',
    },
  },
  {
    id: 'UT11',
    bug: 'an unknown key is held back until group time is where UTC was',
    law: 'nobody is denied for what was forgotten and is out',
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
    bug: 'what a peer said of its wall clock is believed for ever',
    law: 'what was heard ten seconds ago is not known any more',
    edits: [
      {
        in: 'WallClocks.utcMillis',
        find: '&& nowMillis - heard.heardMillis <= HEARD_MILLIS',
        replace: '',
      },
    ],
    unitTest: {
      file: 'clock/wall-clocks.test.ts',
      why: 'wall clocks of the simulator that are set back were ahead of others alone',
    },
  },
  {
    id: 'UT13',
    bug: 'who brings timestamps waits for outages, too',
    law: 'timestamps of callers are UTC',
    edits: [{ in: 'FixedWindows.#endOf', find: 'isEvent ? endMillis :', replace: '' }],
    unitTest: {
      file: 'limiter/utc.test.ts',
      why: 'a user with timestamps would have to ask just after an outage, within one short window',
    },
  },
  {
    id: 'UT14',
    bug: 'steps are forgotten by what UTC skipped, not by what passed',
    law: 'nothing is freed before its window would have ended',
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
