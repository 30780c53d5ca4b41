/** Mutants: the text of a rule document that group 0 keeps for its author, and the windows of a key that a peek reads. */
import type { Mutant } from './mutant.ts';

const NO_TEXT = 'nothing is decided by the text of a document, so no world of the simulator keeps one';
const KEPT = { file: 'node/kept-document.test.ts', why: NO_TEXT };

export const DOCUMENTS: readonly Mutant[] = [
  {
    id: 'DT1',
    bug: 'a change of one rule keeps the text of before, which says other rules than those in force',
    edits: [
      { in: 'readRuleOfDocument', find: '{ ...read, document: text }', replace: '{ ...read, document }' },
    ],
    unitTest: KEPT,
  },
  {
    id: 'DT2',
    bug: 'a change without a text leaves the old text in group 0',
    edits: [
      {
        in: 'changedRules',
        find: 'const { definitions: _, document: __, ...state } = record.state;',
        replace: 'const { definitions: _, ...state } = record.state;',
      },
    ],
    unitTest: KEPT,
  },
  {
    id: 'DT3',
    bug: 'a changed text is kept without checking that it says the rules that are now in force',
    edits: [{ in: 'readRuleOfDocument', find: 'return isSame ?', replace: 'return !isSame || isSame ?' }],
    unitTest: KEPT,
  },
  {
    id: 'DT4',
    bug: 'a restored cluster is compared by the text of its rules as well, which decides nothing',
    edits: [
      {
        in: 'metaHash',
        find: 'state: { rules, definitions, tokens } }',
        replace: 'state: { rules, definitions, tokens, document } }',
      },
      { in: 'metaHash', find: 'tokens ?? null]', replace: 'tokens ?? null, document]' },
    ],
    unitTest: KEPT,
  },
  {
    id: 'DT5',
    bug: 'a key of nested descriptors has no limits: its page shows nothing',
    edits: [
      {
        in: 'countedNames',
        find: 'scope.steps.filter(({ isCounted }) => isCounted)',
        replace: 'scope.steps.filter(({ isCounted }) => !isCounted)',
      },
    ],
    unitTest: {
      file: 'matching/peeks.test.ts',
      why: 'no world of the simulator peeks at keys of nested descriptors',
    },
  },
];
