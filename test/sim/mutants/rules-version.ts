/** Mutants: by which version of the rules an answer says that it was decided, and who leads without any. */
import type { Mutant } from './mutant.ts';

export const RULES_VERSION: readonly Mutant[] = [
  {
    id: 'RV1',
    bug: 'a denial at once tells the rules that the log has for later instead of those in force where it was decided',
    law: 'an answer tells the rules that decided it',
    edits: [
      {
        in: 'QuickAnswers.rejectionOf',
        find: 'return denial && answerOf(denial, request.requestId);',
        replace:
          'return denial && answerOf({ ...denial, rulesVersion: denial.rulesVersion + 1 }, request.requestId);',
      },
    ],
  },
  {
    id: 'RV3',
    bug: 'a node that never heard of group 0 keeps a new partition to itself, which gets no rules',
    law: 'what a majority can decide is decided',
    edits: [{ in: 'FirstRules.tick', find: "raft.avoidLeading('rulesUnknown', true);", replace: ';' }],
    unitTest: {
      file: 'node/first-rules.test.ts',
      why: 'a cut between two of three nodes must come before group 0 has told anybody anything, and stay',
    },
  },
  {
    id: 'RV2',
    bug: 'a repeated request is told the rules of today instead of those that granted it',
    law: 'an answer tells the rules that decided it',
    edits: [
      {
        in: 'Judgement.answer',
        find: 'return state.memory.answerOf(this.#repeated);',
        replace: 'return { ...state.memory.answerOf(this.#repeated), rulesVersion: place.rulesVersion };',
      },
    ],
  },
];
