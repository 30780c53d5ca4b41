/**
 * The meaning of a rule document, written again: the limits that it gives a request. It uses no code of the
 * product.
 */
import type { Descriptors } from '../../src/api/descriptors.ts';

export interface DocumentWindow {
  /** Absent: the window is named by its length. Empty: it is named like its rule. */
  readonly name?: string;
  readonly limit: number;
  readonly windowMillis: number;
}

export interface DocumentRule {
  readonly id: string;
  /** Only for requests to this endpoint. */
  readonly match?: string;
  /** Only for customers of this tier, or requests that name it. */
  readonly tier?: string;
  /** A descriptor. Absent: all requests are counted together. */
  readonly countsBy?: 'user' | 'ip' | 'endpoint' | 'customer';
  /** Multiplies the cost of a request. */
  readonly cost: number;
  /** It denies nothing. */
  readonly isShadow: boolean;
  /** In the order of the document. */
  readonly windows: readonly DocumentWindow[];
}

export interface RulesDocument {
  /** The version of the table made from it. */
  readonly version: number;
  readonly text: string;
  readonly rules: readonly DocumentRule[];
  /** Denies requests that no rule matches, shadow rules included. */
  readonly deniesUnmatched: boolean;
}

export interface DocumentSettings {
  /** Oldest first; the version of each is one more. */
  readonly list: readonly RulesDocument[];
  /** The mean time between two changes. */
  readonly changeMeanMillis: number;
  /** The mean time between two described requests. */
  readonly clientMeanMillis: number;
}

export interface ExpectedLimit {
  readonly userId: string;
  readonly ruleId: string;
  readonly cost: number;
}

/** In the order of the document. */
export function expectedLimits(
  { rules }: RulesDocument,
  descriptors: Descriptors,
  cost: number,
  isShadow: boolean,
): readonly ExpectedLimit[] {
  return rules
    .filter((rule) => rule.isShadow === isShadow && isFor(rule, descriptors))
    .flatMap(({ id, countsBy, cost: factor, windows }) =>
      inOrder(windows).map((window) => ({
        userId: countsBy === undefined ? '*' : `${countsBy}=${descriptors.get(countsBy) ?? ''}`,
        ruleId: windowIdOf(id, window),
        cost: cost * factor,
      })),
    );
}

/** The lengths in the documents of the simulator, and their names. */
const LENGTHS: ReadonlyMap<number, string> = new Map([
  [1_000, 'second'],
  [60_000, 'minute'],
]);

export function windowIdOf(ruleId: string, { name, windowMillis }: DocumentWindow): string {
  if (name === '') return ruleId;
  return `${ruleId}/${name ?? LENGTHS.get(windowMillis) ?? `${windowMillis}ms`}`;
}

/** The shortest first, and windows of the same length by name. */
export function inOrder(windows: readonly DocumentWindow[]): readonly DocumentWindow[] {
  const called = (window: DocumentWindow): string => windowIdOf('', window);
  return windows.toSorted((a, b) => a.windowMillis - b.windowMillis || (called(a) < called(b) ? -1 : 1));
}

function isFor({ match, tier, countsBy }: DocumentRule, descriptors: Descriptors): boolean {
  const isOfTier = tier === undefined || descriptors.get('tier') === tier;
  const isMatched = isOfTier && (match === undefined || descriptors.get('endpoint') === match);
  return isMatched && (countsBy === undefined || descriptors.get(countsBy) !== undefined);
}
