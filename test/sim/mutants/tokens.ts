/** Mutants: who may ask. */
import type { Mutant } from './mutant.ts';

const NO_LISTENERS = 'the worlds of the simulator have no doors, and nobody there shows a token';

export const TOKENS: readonly Mutant[] = [
  {
    id: 'TK1',
    bug: 'a node judges by the tokens that it knew first: one that was revoked since is still good',
    law: 'a revoked token is good nowhere',
    edits: [
      {
        in: 'Tokens.#currentById',
        find: 'if (table !== this.#table) {',
        replace: 'if (table !== this.#table && this.#table === undefined) {',
      },
    ],
    unitTest: { file: 'node/tokens.test.ts', why: NO_LISTENERS },
  },
  {
    id: 'TK2',
    bug: 'a snapshot of group 0 holds no tokens: a node that begins with it is open',
    law: 'a closed cluster stays closed',
    edits: [
      {
        in: 'MetaGroup.snapshot',
        find: 'let rest = encodeMeta(this.#record ?? null);',
        replace:
          'const { tokens: _, ...state } = { ...this.#record?.state }; let rest = encodeMeta(this.#record === undefined ? null : { ...this.#record, state: state as MetaState });',
      },
    ],
    unitTest: { file: 'meta/meta-group.test.ts', why: NO_LISTENERS },
  },
];
