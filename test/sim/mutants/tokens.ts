/** Mutants: tokens, which say who may send requests. */
import type { Mutant } from './mutant.ts';

const NO_LISTENERS = 'the worlds of the simulator have no listeners, so nobody shows a token';

export const TOKENS: readonly Mutant[] = [
  {
    id: 'TK1',
    bug: 'a node keeps the first tokens that it knew, so a token that was revoked since is still valid',
    law: 'a revoked token is valid nowhere',
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
    bug: 'a snapshot of group 0 holds no tokens, so a node that starts from it asks for none',
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
