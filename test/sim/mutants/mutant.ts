/** What a mutant is. The lists are in the files beside this one, by area; `all.ts` has them together. */
import type { Seams } from '../node-world.ts';
import type { Feature } from '../features.ts';
import type { FaultName, Kind } from '../kinds.ts';

/** One edit by meaning: a statement, or a part of one, in a named place. Files may be renamed and lines may move. */
export interface Edit {
  /** A function, `Class.member` (`Class.#member`, `Class.constructor`) or a constant of a module, in any file. */
  readonly in: string;
  /** Occurs there once; blanks, line ends and comments do not count. */
  readonly find: string;
  readonly replace: string;
}

/** A mutant that no world of the simulator can show, for the reason given: a unit test does. */
export interface UnitTest {
  /** Below `test/`. */
  readonly file: string;
  readonly why: string;
}

export interface Mutant {
  readonly id: string;
  readonly bug: string;
  /** What it breaks, and so which check should see it. Those of other systems' bugs tell by themselves. */
  readonly law?: string;
  /** More than one where one place alone would trip over an assertion in the next. */
  readonly edits?: readonly Edit[];
  /** Something between a node and its surroundings instead. */
  readonly seams?: Seams;
  /** The script that shows it, with a crash at some boundary or none; no seed does. */
  readonly script?: string;
  /** The kind of world whose seeds show it, where those of all kinds together do too rarely. */
  readonly world?: Kind;
  /** What the worlds have that show it; absent: what its area says (all.ts). */
  readonly features?: readonly Feature[];
  /** What breaks in those worlds; absent: what its area says. */
  readonly faults?: readonly FaultName[];
  readonly unitTest?: UnitTest;
}
