/** What the logs of the stopped nodes tell about requests whose outcome no client knows. Plain data. */
import type { Operation } from '../history.ts';

export interface Placement {
  readonly group: number;
  readonly index: number;
  /** In the entry; null: not known. */
  readonly position: number | null;
  /** The time the decision used. */
  readonly timeMillis: number;
}

export type Fate =
  /** In no log, or denied there: nothing was charged. */
  | { readonly kind: 'uncharged' }
  /** At each of these places; they are several if an answer was forgotten, and the request repeated. */
  | { readonly kind: 'granted'; readonly at: readonly Placement[] }
  /** It is in the log, but before what can be replayed: granted at one of these places, or denied at all. */
  | { readonly kind: 'logged'; readonly at: readonly Placement[] };

/** By the operation of the `Unknown`. What is missing here may be granted anywhere. */
export type Fates = ReadonlyMap<Operation, Fate>;

export const NO_FATES: Fates = new Map();
