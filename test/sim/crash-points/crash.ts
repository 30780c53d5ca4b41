/** The crash of a run: its boundary, the nodes that die, the fate of their unsynced writes, and when they come back. */
import type { NodeId } from '../../../raft/types.ts';
import type { Fate } from '../../../storage/memory-store.ts';
import type { Boundary } from '../node-world.ts';

/**
 * A node's own boundaries, and two more: before it reads a client's question, and before the client gets the answer.
 */
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
  /** The node at the boundary alone, or all nodes together. */
  readonly who: (typeof WHO)[number];
  /** The fate of the writes in flight. */
  readonly fate: Fate;
  /**
   * When the node at the boundary starts again: at once; at once and once more after it died during recovery; when the
   * others have made progress without it; or only after the script. Other nodes that crash with it start at once.
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

/**
 * For one group. If all nodes crash, `later` would lie between the other two, since no node has made progress before.
 */
export const GROUP_VARIANTS = ALL.filter(
  ({ who, returns }) => returns !== 'twice' && (who === 'one' || returns !== 'later'),
);

/** For whole nodes. A membership change waits for nodes that are down, so none stays away. */
export const NODE_VARIANTS = ALL.filter(
  ({ who, returns }) => returns !== 'never' && (who === 'one' || returns === 'once'),
);

/** Whether this variant differs from others at this point. Without a write in flight there is none to keep. */
export function isVariantAt(point: Point, { who, fate }: Variant): boolean {
  return fate === 'lost' || (who === 'one' ? point.isWriting : point.someoneIsWriting);
}

export function nameOf({ who, fate, returns }: Variant): string {
  return `${who}-${fate}-${returns}`;
}

/** @throws RangeError for an unknown name */
export function variantNamed(name: string, variants: readonly Variant[]): Variant {
  const variant = variants.find((candidate) => nameOf(candidate) === name);
  if (variant === undefined) {
    throw new RangeError(`there is no variant ${name}; known: ${variants.map(nameOf).join(', ')}`);
  }
  return variant;
}
