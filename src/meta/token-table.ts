/** The tokens in the state of group 0, and what changes them. Pure: the same on every node. */
import type { ChangeFailure } from '../api/cluster-change.ts';
import { type TokenEntry, TOKENS_MAX } from '../api/token.ts';

export interface TokenTable {
  /** Counts the changes; a node knows all up to it. */
  readonly version: number;
  /** At most `TOKENS_MAX`, each with an id of its own. */
  readonly entries: readonly TokenEntry[];
}

/** A `TokenChange` of which the secret was drawn, and is told to nobody here. */
export type TokenEntryChange =
  | { readonly create: TokenEntry }
  | { readonly revoke: string; readonly canOpen: boolean };

export function changedTokens(
  { version, entries }: TokenTable = { version: 0, entries: [] },
  change: TokenEntryChange,
): TokenTable | ChangeFailure {
  if ('create' in change) {
    if (entries.some(({ id }) => id === change.create.id)) return 'tokenExists';
    if (entries.length >= TOKENS_MAX) return 'tooManyTokens';
    return { version: version + 1, entries: [...entries, change.create] };
  }
  const kept = entries.filter(({ id }) => id !== change.revoke);
  if (kept.length === entries.length) return 'unknownToken';
  if (!change.canOpen && hasAdmin(entries) && !hasAdmin(kept)) return 'lastAdmin';
  return { version: version + 1, entries: kept };
}

/** Then everybody must show a token. */
export function hasAdmin(entries: readonly TokenEntry[]): boolean {
  return entries.some(({ role }) => role === 'admin');
}
