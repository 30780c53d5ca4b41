/** Mutants: request ids that other rules have another key keep: where a retry and a refund look for the grant of before. */
import type { Mutant } from './mutant.ts';

export const MOVED_IDS: readonly Mutant[] = [
  {
    id: 'A41',
    bug: 'a retry whose id the rules of before had another key keep is taken for a new request',
    law: 'a request with an id is granted once, whatever rules come and go',
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
    bug: 'a partition of older rules says that it has granted nothing, and may still do so by them',
    law: 'a request with an id is granted once, whatever rules come and go',
    edits: [
      {
        in: 'Partition.#reasonNotToPropose',
        find: 'matchedBy > this.#own.rulesAhead(this.#term)',
        replace: 'matchedBy < 0',
      },
    ],
    unitTest: {
      file: 'partition/replicated-rules.test.ts',
      why: 'a retry must come to a node of new rules while an attempt of before is on its way to a partition that has not taken them',
    },
  },
  {
    id: 'A43',
    bug: 'a refund looks for the grant only where the rules in force have the id kept',
    law: 'a refund finds the grant, whatever rules came since',
    edits: [
      {
        in: 'refundAs',
        find: 'earlierKeepers(earlier(),',
        replace: 'earlierKeepers(earlier().slice(0, 0),',
      },
    ],
    unitTest: {
      file: 'matching/moved-ids-random.test.ts',
      why: 'clients of the simulator cannot tell a grant that was not found from one that was forgotten or never made',
    },
  },
];
