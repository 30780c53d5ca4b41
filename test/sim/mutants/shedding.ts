/** Mutants: refusing while there is more to do than a node can. */
import type { Mutant } from './mutant.ts';

export const SHEDDING: readonly Mutant[] = [
  {
    id: 'SH1',
    bug: 'what a node sheds is asked for all the same',
    law: 'what was told not to be proposed is in no log',
    edits: [
      {
        in: 'Forwarder.receiveRequests',
        find: 'this.#answer(from, id, SHED); continue;',
        replace: 'this.#answer(from, id, SHED);',
      },
    ],
  },
  {
    id: 'SH2',
    bug: 'what the log is too slow for is refused as not proposed, and proposed',
    law: 'what was told not to be proposed is in no log',
    edits: [
      {
        in: 'Partition.#allow',
        find: 'else if (reason !== undefined) done(unavailable(reason, false)); else this',
        replace:
          'else if (reason !== undefined) done(unavailable(reason, false)); if (rejection === undefined) this',
      },
    ],
  },
  {
    id: 'SH3',
    bug: 'a node that does not lead sheds, and is taken for the leader',
    edits: [
      {
        in: 'Forwarder.receiveRequests',
        find: "request.ask !== 'customer' && local.leader === this.#init.nodeId",
        replace: "request.ask !== 'customer'",
      },
    ],
    unitTest: {
      file: 'router/shedding.test.ts',
      why: 'the next request that is not shed is told who leads: a search ends a question later',
    },
  },
  {
    id: 'SH4',
    bug: 'a limit that was lowered never comes back',
    law: 'an overload that is over leaves nobody refused',
    edits: [
      {
        in: 'DelayLimit.#adjust',
        find: 'this.#limit = Math.min(most, this.#limit + more);',
        replace: '',
      },
    ],
    unitTest: {
      file: 'shedding/delay-limit.test.ts',
      why: 'on virtual time no round of an event loop takes any, and entries that wait have deadlines shorter than what lowers the limit',
    },
  },
  {
    id: 'SH5',
    bug: 'the greedy are not refused before others',
    law: 'one client cannot starve others',
    edits: [
      {
        in: 'LoadShedder.refuses',
        find: 'room > 0 && this.#clients.openOf(client) < ROOM_FACTOR * room',
        replace: 'room > 0',
      },
    ],
    unitTest: {
      file: 'shedding/load-shedder.test.ts',
      why: 'clients of the simulator come through no door',
    },
  },
  {
    id: 'SH6',
    bug: 'what waited unread for want of time is let in as if it had not',
    law: 'what is let in is answered soon',
    edits: [{ in: 'LoadShedder.refuses', find: 'if (isLate) this.#late.waited();', replace: '' }],
    unitTest: {
      file: 'shedding/load-shedder.test.ts',
      why: 'clients of the simulator come through no door',
    },
  },
];
