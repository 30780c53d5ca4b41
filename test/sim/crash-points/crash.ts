/** Which crash a run has: at which boundary, of whom, what becomes of unsynced writes, and who comes back when. */
import type { NodeId } from '../../../raft/types.ts';
import type { Fate } from '../../../storage/memory-store.ts';
import type { Boundary } from '../node-world.ts';

/** Besides a node's own boundaries: before it looks at a client's question, and before the client hears the answer. */
export type PointKind = Boundary | 'asked' | 'answer';

/** A boundary of the run without a crash. Runs with a crash are equal up to it. */
export interface Point {
  readonly kind: PointKind;
  readonly node: NodeId;
  /** This node has a write that is not durable. */
  readonly isWriting: boolean;
  readonly someoneIsWriting: boolean;
}

const WHO = ['one', 'all'] as const;
const FATES = ['lost', 'kept'] as const satisfies readonly Fate[];
const RETURNS = ['once', 'twice', 'later', 'never'] as const;

export interface Variant {
  /** The node at the boundary alone, or every node with it. */
  readonly who: (typeof WHO)[number];
  /** What becomes of the writes in flight of those that crash. */
  readonly fate: Fate;
  /**
   * When the node at the boundary starts again: at once, at once and again after it died on its way back, when the others
   * have long gone on without it, or only after the script. Others that crash with it start again at once.
   */
  readonly returns: (typeof RETURNS)[number];
}

export interface Crash extends Variant {
  /** Counted from 1. */
  readonly at: number;
}

const ALL: readonly Variant[] = WHO.flatMap((who) =>
  FATES.flatMap((fate) => RETURNS.map((returns) => ({ who, fate, returns }))),
);

/** Of one group. Of crashes of all, `later` would lie between the other two: nobody has gone on before. */
export const GROUP_VARIANTS = ALL.filter(
  ({ who, returns }) => returns !== 'twice' && (who === 'one' || returns !== 'later'),
);

/** Of whole nodes. A change of the nodes waits for those that are away, so nobody stays away. */
export const NODE_VARIANTS = ALL.filter(
  ({ who, returns }) => returns !== 'never' && (who === 'one' || returns === 'once'),
);

/** Do they differ from others at this point? Without a write in flight there is none to keep. */
export function isVariantAt(point: Point, { who, fate }: Variant): boolean {
  return fate === 'lost' || (who === 'one' ? point.isWriting : point.someoneIsWriting);
}

export function nameOf({ who, fate, returns }: Variant): string {
  return `${who}-${fate}-${returns}`;
}

/** @throws RangeError if it is none of these */
export function variantNamed(name: string, variants: readonly Variant[]): Variant {
  const variant = variants.find((candidate) => nameOf(candidate) === name);
  if (variant === undefined) {
    throw new RangeError(`there is no variant ${name}; known: ${variants.map(nameOf).join(', ')}`);
  }
  return variant;
}
