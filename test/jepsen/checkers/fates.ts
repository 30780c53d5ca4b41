/** The outcome of requests without an answer, as the logs of the stopped nodes show it. Plain data. */
import type { Operation } from '../history.ts';

export interface Placement {
  readonly group: number;
  readonly index: number;
  /** Position in the entry. Null: unknown. */
  readonly position: number | null;
  /** The time that the decision used. */
  readonly timeMillis: number;
}

export type Fate =
  /** The request is in no log or was denied there: nothing was charged. */
  | { readonly kind: 'uncharged' }
  /** Granted at each of these places. There are several if an answer was forgotten and the request repeated. */
  | { readonly kind: 'granted'; readonly at: readonly Placement[] }
  /**
   * The request is in the log, but before the part that can be replayed: it was granted at one of these places, or
   * denied.
   */
  | { readonly kind: 'logged'; readonly at: readonly Placement[] };

/** Keyed by the operation of the `Unknown`. A request that is missing here may have been granted anywhere. */
export type Fates = ReadonlyMap<Operation, Fate>;

export const NO_FATES: Fates = new Map();
