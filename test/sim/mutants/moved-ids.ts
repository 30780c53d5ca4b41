/**
 * Mutants: request ids that a change of the rules moves to another key: where a retry or a refund searches for the
 * earlier grant.
 */
import type { Mutant } from './mutant.ts';

export const MOVED_IDS: readonly Mutant[] = [
  {
    id: 'A41',
    bug: 'a retry whose id was kept under another key by earlier rules is taken for a new request',
    law: 'a request with an id is granted once, however the rules change',
    edits: [
      {
        in: 'recallEarlier',
        find: 'earlierKeepers(init.earlier(),',
        replace: 'earlierKeepers(init.earlier().slice(0, 0),',
      },
    ],
  },
  {
    id: 'A42',
    bug: 'a partition with older rules answers that it has granted nothing, and may still grant by them',
    law: 'a request with an id is granted once, however the rules change',
    edits: [
      {
        in: 'Partition.#reasonNotToPropose',
        find: 'matchedBy > this.#own.rulesAhead(this.#term)',
        replace: 'matchedBy < 0',
      },
    ],
    unitTest: {
      file: 'partition/replicated-rules.test.ts',
      why: 'a retry must reach a node with new rules while an earlier attempt is on its way to a partition that still has the old ones',
    },
  },
  {
    id: 'A43',
    bug: 'a refund searches for the grant only where the current rules keep the id',
    law: 'a refund finds the grant, whichever rules came since',
    edits: [
      {
        in: 'refundAs',
        find: 'earlierKeepers(earlier(),',
        replace: 'earlierKeepers(earlier().slice(0, 0),',
      },
    ],
    unitTest: {
      file: 'matching/moved-ids-random.test.ts',
      why: 'clients of the simulator cannot distinguish a grant that was not found from one that was forgotten or never made',
    },
  },
];
