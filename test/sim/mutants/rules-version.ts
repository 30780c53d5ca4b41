/** Mutants: the version of the rules in an answer, and leaders that have no rules. */
import type { Mutant } from './mutant.ts';

export const RULES_VERSION: readonly Mutant[] = [
  {
    id: 'RV1',
    bug: 'a denial at once names the version of rules that are still in the log, not of those that decided it',
    law: 'an answer names the rules that decided it',
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
    bug: 'a node that never heard of group 0 goes on leading a new partition, which gets no rules',
    law: 'a request that a majority can decide is decided',
    edits: [{ in: 'FirstRules.tick', find: "raft.avoidLeading('rulesUnknown', true);", replace: ';' }],
    unitTest: {
      file: 'node/first-rules.test.ts',
      why: 'a cut between two of three nodes must come before group 0 has reached anybody, and stay',
    },
  },
  {
    id: 'RV2',
    bug: 'a repeated request names the current rules, not those that granted it',
    law: 'an answer names the rules that decided it',
    edits: [
      {
        in: 'Judgement.answer',
        find: 'return state.memory.answerOf(this.#repeated);',
        replace: 'return { ...state.memory.answerOf(this.#repeated), rulesVersion: place.rulesVersion };',
      },
    ],
  },
];
