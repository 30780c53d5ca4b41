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
const RETURNS = ['once', 'later', 'never'] as const;

export interface Variant {
  /** The node at the boundary alone, or every node with it. */
  readonly who: (typeof WHO)[number];
  /** What becomes of the writes in flight of those that crash. */
  readonly fate: Fate;
  /**
   * When the node at the boundary starts again: at once, when the others have long gone on without it, or only after
   * the script. Others that crash with it start again at once.
   */
  readonly returns: (typeof RETURNS)[number];
}

export interface Crash extends Variant {
  /** Counted from 1. */
  readonly at: number;
}

/** Of crashes of all, `later` would lie between the other two: nobody has gone on before. */
export const VARIANTS: readonly Variant[] = WHO.flatMap((who) =>
  FATES.flatMap((fate) => RETURNS.map((returns) => ({ who, fate, returns }))),
).filter(({ who, returns }) => who === 'one' || returns !== 'later');

/** All that differ at this point: without a write in flight there is none to keep. */
export function variantsAt(point: Point): Variant[] {
  return VARIANTS.filter(
    ({ who, fate }) => fate === 'lost' || (who === 'one' ? point.isWriting : point.someoneIsWriting),
  );
}

export function nameOf({ who, fate, returns }: Variant): string {
  return `${who}-${fate}-${returns}`;
}

/** @throws RangeError if there is none */
export function variantNamed(name: string): Variant {
  const variant = VARIANTS.find((candidate) => nameOf(candidate) === name);
  if (variant === undefined) {
    throw new RangeError(`there is no variant ${name}; known: ${VARIANTS.map(nameOf).join(', ')}`);
  }
  return variant;
}
