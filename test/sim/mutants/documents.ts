/**
 * Mutants: the text of the rule document, which group 0 keeps for its author, and the windows of a key that a peek
 * reads.
 */
import type { Mutant } from './mutant.ts';

const NO_TEXT = 'the text of a document decides nothing, so no world of the simulator keeps one';
const KEPT = { file: 'node/kept-document.test.ts', why: NO_TEXT };

export const DOCUMENTS: readonly Mutant[] = [
  {
    id: 'DT1',
    bug: 'changing one rule keeps the old text of the document, which no longer says the rules in force',
    edits: [
      { in: 'readRuleOfDocument', find: '{ ...read, document: text }', replace: '{ ...read, document }' },
    ],
    unitTest: KEPT,
  },
  {
    id: 'DT2',
    bug: 'rules that are changed without a text leave the old text in group 0',
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
    bug: 'a changed text is kept without checking that it says the rules in force',
    edits: [{ in: 'readRuleOfDocument', find: 'return isSame ?', replace: 'return !isSame || isSame ?' }],
    unitTest: KEPT,
  },
  {
    id: 'DT4',
    bug: 'the hash by which restored clusters are compared covers the text of the rules, which decides nothing',
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
    bug: 'the limits of a key of nested descriptors are not found, so its page shows nothing',
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
