/** Mutants: leaders that gather on one node. */
import type { Mutant } from './mutant.ts';

const NO_MINUTES = 'a world lasts some seconds, and leaders gather only after a calm minute';

export const GATHERING: readonly Mutant[] = [
  {
    id: 'GA1',
    bug: 'leaders gather on a node that must not lead',
    law: 'leaders gather on a node that can lead them',
    edits: [
      { in: 'Leading.#newGathering', find: 'mayLead: () => raft.isWilling', replace: 'mayLead: () => true' },
    ],
  },
  {
    id: 'GA2',
    bug: 'leaders gather on a node that does not have every partition',
    law: 'leaders gather on a node that can lead them',
    edits: [{ in: 'placesOf', find: '.filter(isEverywhere)', replace: '' }],
    features: ['gathering', 'members'],
  },
  {
    id: 'GA3',
    bug: 'the decision of the leader of group 0 reaches no other node',
    law: 'all nodes know where leaders gather',
    edits: [{ in: 'Gathering.receive', find: 'this.#setTarget(decided.target);', replace: 'void 0;' }],
  },
  {
    id: 'GA4',
    bug: 'no group prefers the node on which leaders gather',
    law: 'the node on which leaders gather leads',
    edits: [
      {
        in: 'Leading.prefer',
        find: 'replicas.includes(target) ? target : replicas[0]',
        replace: 'replicas[0]',
      },
    ],
  },
  {
    id: 'GA5',
    bug: 'leaders gather again as soon as they have spread',
    law: 'leaders do not move back and forth',
    edits: [{ in: 'Gathering.#gather', find: 'if ((!isCalm && !isFirst) || able', replace: 'if (able' }],
    unitTest: { file: 'node/gathering.test.ts', why: NO_MINUTES },
  },
  {
    id: 'GA6',
    bug: 'leaders stay on a node that has no headroom left',
    law: 'leaders spread at once when their node is busy',
    edits: [
      {
        in: 'Gathering.#stay',
        find: 'load.busyPermille > BUSY_PERMILLE && this',
        replace: 'load.busyPermille > 1_000 && this',
      },
    ],
    unitTest: { file: 'node/gathering.test.ts', why: 'no law says how busy a node may be' },
  },
  {
    id: 'GA7',
    bug: 'a decision of an earlier term counts',
    law: 'the newest leader of group 0 decides',
    edits: [{ in: 'Gathering.receive', find: '|| decided.term < this.#term', replace: '' }],
    unitTest: { file: 'node/gathering.test.ts', why: 'two nodes that decide agree again within seconds' },
  },
  {
    id: 'GA8',
    bug: 'leaders move at once to the node that gets most requests',
    law: 'leaders do not move back and forth',
    edits: [
      {
        in: 'Gathering.#stay',
        find: 'lasted(this.#moreSince, MORE_MILLIS, now)',
        replace: 'isMore',
      },
    ],
    unitTest: { file: 'node/gathering.test.ts', why: NO_MINUTES },
  },
  {
    id: 'GA10',
    bug: 'after each overload leaders wait only a minute to gather again, instead of twice as long each time',
    law: 'leaders do not move back and forth',
    edits: [
      {
        in: 'Gathering.#gather',
        find: 'this.#calmMillis = Math.min(2 * this.#calmMillis, CALM_MILLIS_MAX);',
        replace: 'void 0;',
      },
    ],
    unitTest: { file: 'node/gathering.test.ts', why: NO_MINUTES },
  },
  {
    id: 'GA9',
    bug: 'when no decision of the leader of group 0 arrives, leaders stay where they are',
    law: 'without a decision leaders spread',
    edits: [
      {
        in: 'Gathering.#forgetOldDecision',
        find: 'if (now - this.#decidedMillis > HEARD_MILLIS) this.#setTarget(NO_NODE);',
        replace: '',
      },
    ],
    unitTest: { file: 'node/gathering.test.ts', why: 'a world in which nobody decides ends soon' },
  },
];
