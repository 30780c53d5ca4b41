/** What a document of rules means, once more: which limits a request is under by it. It shares no code with the product. */
import type { Descriptors } from '../../src/api/descriptors.ts';

export interface DocumentWindow {
  /** Absent: it is called by its length. Empty: like its rule. */
  readonly name?: string;
  readonly limit: number;
  readonly windowMillis: number;
}

export interface DocumentRule {
  readonly id: string;
  /** Only of requests to this endpoint. */
  readonly match?: string;
  /** Only of customers of this tier, or of who says so. */
  readonly tier?: string;
  /** A descriptor; absent: all requests are counted together. */
  readonly countsBy?: 'user' | 'ip' | 'endpoint' | 'customer';
  /** What the cost of a request is multiplied by. */
  readonly cost: number;
  /** It denies nothing. */
  readonly isShadow: boolean;
  /** In the order in which they are written. */
  readonly windows: readonly DocumentWindow[];
}

export interface RulesDocument {
  /** Of the table that is made of it. */
  readonly version: number;
  readonly text: string;
  readonly rules: readonly DocumentRule[];
  /** Requests that no rule is for, in shadow or not. */
  readonly deniesUnmatched: boolean;
}

export interface DocumentSettings {
  /** Oldest first; the version of each is one more. */
  readonly list: readonly RulesDocument[];
  /** Between two changes. */
  readonly changeMeanMillis: number;
  /** Between two requests by descriptors. */
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

/** The lengths that documents of the simulator have, and what they are called. */
const LENGTHS: ReadonlyMap<number, string> = new Map([
  [1_000, 'second'],
  [60_000, 'minute'],
]);

export function windowIdOf(ruleId: string, { name, windowMillis }: DocumentWindow): string {
  if (name === '') return ruleId;
  return `${ruleId}/${name ?? LENGTHS.get(windowMillis) ?? `${windowMillis}ms`}`;
}

/** The shortest first, and those of one length by what they are called. */
export function inOrder(windows: readonly DocumentWindow[]): readonly DocumentWindow[] {
  const called = (window: DocumentWindow): string => windowIdOf('', window);
  return windows.toSorted((a, b) => a.windowMillis - b.windowMillis || (called(a) < called(b) ? -1 : 1));
}

function isFor({ match, tier, countsBy }: DocumentRule, descriptors: Descriptors): boolean {
  const isOfTier = tier === undefined || descriptors.get('tier') === tier;
  const isMatched = isOfTier && (match === undefined || descriptors.get('endpoint') === match);
  return isMatched && (countsBy === undefined || descriptors.get(countsBy) !== undefined);
}
