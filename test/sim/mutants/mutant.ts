/** The type of a mutant. The lists of mutants are in the files beside this one, by area; `all.ts` joins them. */
import type { Seams } from '../node-world.ts';
import type { Feature } from '../features.ts';
import type { FaultName, Kind } from '../kinds.ts';

/**
 * One edit of the product. It names its place by function, not by file and line, so files may be renamed and lines may
 * move.
 */
export interface Edit {
  /** A function, `Class.member` (`Class.#member`, `Class.constructor`) or a constant of a module, in any file. */
  readonly in: string;
  /** A text that occurs there exactly once. Blanks, line ends and comments do not count. */
  readonly find: string;
  readonly replace: string;
}

/** For a mutant that no world of the simulator can show: the unit test that catches it. */
export interface UnitTest {
  /** Path below `test/`. */
  readonly file: string;
  /** Why no world of the simulator can show it. */
  readonly why: string;
}

export interface Mutant {
  readonly id: string;
  readonly bug: string;
  /** The law that it breaks, which says which check should see it. Absent where the bug itself says so. */
  readonly law?: string;
  /** More than one edit where one alone would only fail an assertion in the next place. */
  readonly edits?: readonly Edit[];
  /** Instead of edits: something between a node and its surroundings, for example a disk that lies. */
  readonly seams?: Seams;
  /** The script of crash points that shows it, with a crash at some boundary or without one. No seed shows it. */
  readonly script?: string;
  /** The kind of world whose seeds show it, if the kind of its area shows it too rarely. */
  readonly world?: Kind;
  /** The features of the worlds that show it. Absent: those of its area (all.ts). */
  readonly features?: readonly Feature[];
  /** The faults of those worlds. Absent: those of its area. */
  readonly faults?: readonly FaultName[];
  readonly unitTest?: UnitTest;
}
