/** Mutants: refusing requests while a node has more to do than it can. */
import type { Mutant } from './mutant.ts';

export const SHEDDING: readonly Mutant[] = [
  {
    id: 'SH1',
    bug: 'a request that a node sheds is proposed all the same',
    law: 'a request reported as not proposed is in no log',
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
    bug: 'a request that the log is too slow for is refused as not proposed, and proposed all the same',
    law: 'a request reported as not proposed is in no log',
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
    bug: 'a node that sheds a request but does not lead is taken for the leader',
    edits: [
      {
        in: 'Forwarder.receiveRequests',
        find: "request.ask !== 'customer' && local.leader === this.#init.nodeId",
        replace: "request.ask !== 'customer'",
      },
    ],
    unitTest: {
      file: 'router/shedding.test.ts',
      why: 'the next request that is not shed learns who leads: a search ends one question later',
    },
  },
  {
    id: 'SH4',
    bug: 'a concurrency limit that was lowered never rises again',
    law: 'after an overload nobody is refused any more',
    edits: [
      {
        in: 'DelayLimit.#adjust',
        find: 'this.#limit = Math.min(most, this.#limit + more);',
        replace: '',
      },
    ],
    unitTest: {
      file: 'shedding/delay-limit.test.ts',
      why: 'in virtual time the event loop takes no time, and entries that wait have deadlines shorter than what lowers the limit',
    },
  },
  {
    id: 'SH5',
    bug: 'clients with many open requests are not refused before others',
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
      why: 'clients of the simulator do not come through a listener',
    },
  },
  {
    id: 'SH6',
    bug: 'requests that waited unread for lack of time are admitted as if they had not waited',
    law: 'an admitted request is answered soon',
    edits: [{ in: 'LoadShedder.refuses', find: 'if (isLate) this.#late.waited();', replace: '' }],
    unitTest: {
      file: 'shedding/load-shedder.test.ts',
      why: 'clients of the simulator do not come through a listener',
    },
  },
];
