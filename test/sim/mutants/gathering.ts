/** Mutants: leaders that gather on one node. */
import type { Mutant } from './mutant.ts';

const NO_MINUTES = 'worlds last some seconds, and a calm minute none of them';

export const GATHERING: readonly Mutant[] = [
  {
    id: 'GA1',
    bug: 'leaders gather on a node that may not lead',
    law: 'leaders gather on a node that can lead them',
    edits: [
      { in: 'Leading.#newGathering', find: 'mayLead: () => raft.isWilling', replace: 'mayLead: () => true' },
    ],
  },
  {
    id: 'GA2',
    bug: 'leaders gather where not every partition is',
    law: 'leaders gather on a node that can lead them',
    edits: [{ in: 'placesOf', find: '.filter(isEverywhere)', replace: '' }],
    features: ['gathering', 'members'],
  },
  {
    id: 'GA3',
    bug: 'what the leader of group 0 decides reaches nobody',
    law: 'all nodes know where leaders gather',
    edits: [{ in: 'Gathering.receive', find: 'this.#setTarget(decided.target);', replace: 'void 0;' }],
  },
  {
    id: 'GA4',
    bug: 'a node that leaders gather on is preferred by no group',
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
    bug: 'leaders gather again as soon as they are spread',
    law: 'leaders do not flap',
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
    unitTest: { file: 'node/gathering.test.ts', why: 'two that decide agree again within seconds' },
  },
  {
    id: 'GA8',
    bug: 'leaders move at once to the node that clients ask most',
    law: 'leaders do not flap',
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
    bug: 'leaders gather again a minute after each time that they were too much for one node',
    law: 'leaders do not flap',
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
    bug: 'without a word of the leader of group 0 leaders stay where they are',
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
