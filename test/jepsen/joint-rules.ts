/**
 * The rule document of a cluster under test, in two forms: clients replace one by the other while they ask. Also
 * computes the limits of a request from the documents alone, without the code of the product.
 */
import type { Rule } from '../../src/api/rule.ts';
import type { LimitAsked } from './joint-history.ts';

/** Each rule has a high and a low limit. All rules switch at once. */
export const LEVELS = ['high', 'low'] as const;
export type Level = (typeof LEVELS)[number];

interface Window {
  /** The name under which the limiter keeps it: the rule plus its period. */
  readonly rule: string;
  readonly windowMillis: number;
  readonly high: number;
  readonly low: number;
}

/** By the descriptor that they count by, in the order of the document. */
const WINDOWS: Readonly<Record<string, readonly Window[]>> = {
  user: [
    { rule: 'joint-user/1500ms', windowMillis: 1_500, high: 6, low: 3 },
    { rule: 'joint-user/3000ms', windowMillis: 3_000, high: 9, low: 5 },
  ],
  net: [{ rule: 'joint-net/2000ms', windowMillis: 2_000, high: 14, low: 8 }],
  org: [{ rule: 'joint-org/2500ms', windowMillis: 2_500, high: 18, low: 11 }],
};
/** Requested by name, without descriptors. */
const NAMED: Window = { rule: 'joint-named/2000ms', windowMillis: 2_000, high: 5, low: 2 };

export const WINDOW_MILLIS_MAX = Math.max(
  ...[NAMED, ...Object.values(WINDOWS).flat()].map(({ windowMillis }) => windowMillis),
);

/** By rule. */
export function limitsAt(level: Level): Record<string, number> {
  const windows = [NAMED, ...Object.values(WINDOWS).flat()];
  return Object.fromEntries(windows.map((window) => [window.rule, window[level]]));
}

/** The text of a document: the unchanged rules of the single requests, and the rules of this file at `level`. */
export function documentAt(level: Level, single: readonly Rule[]): string {
  const byName = single.map(({ id, limit, windowMillis, clock }) => ({
    id: withoutWindow(id),
    named: true,
    key: 'user',
    windows: { limit, windowMillis },
    clock,
  }));
  const windowOf = (window: Window): unknown => ({
    limit: window[level],
    windowMillis: window.windowMillis,
  });
  const named = { id: withoutWindow(NAMED.rule), named: true, key: 'user', windows: windowOf(NAMED) };
  const described = Object.entries(WINDOWS).map(([name, windows]) => ({
    id: `joint-${name}`,
    key: name,
    windows: windows.map(windowOf),
    clock: 'cluster',
  }));
  return JSON.stringify({ rules: [...byName, { ...named, clock: 'cluster' }, ...described] });
}

/** The rule of a window, as a request names it. */
export function withoutWindow(id: string): string {
  return id.slice(0, id.lastIndexOf('/'));
}

/** The subject of a request: descriptors, or a user under a named rule. */
export type Subject =
  | { readonly kind: 'described'; readonly descriptors: Readonly<Record<string, string>> }
  | { readonly kind: 'named'; readonly user: string };

/** The name in a request, and in the answer. */
export const NAMED_RULE = withoutWindow(NAMED.rule);
export const NAMED_WINDOW = NAMED.rule;

/** In the order of the document, so the first limit has the key that refunds are requested by. */
export function limitsOf(subject: Subject): LimitAsked[] {
  if (subject.kind === 'named') return [asked(`user=${subject.user}`, NAMED)];
  return Object.entries(WINDOWS).flatMap(([name, windows]) => {
    const value = subject.descriptors[name];
    return value === undefined ? [] : windows.map((window) => asked(`${name}=${value}`, window));
  });
}

function asked(key: string, { rule, windowMillis }: Window): LimitAsked {
  return { rule, key, windowMillis };
}
