/** The access tokens in the state of group 0, and changes to them. Pure: the same on every node. */
import type { ChangeFailure } from '../api/cluster-change.ts';
import { type TokenEntry, TOKENS_MAX } from '../api/token.ts';

/** The table of access tokens. */
export interface TokenTable {
  /** The number of changes so far. */
  readonly version: number;
  /** At most `TOKENS_MAX`, with different ids. */
  readonly entries: readonly TokenEntry[];
}

/** A `TokenChange` after its secret was drawn. The secret itself is not in here. */
export type TokenEntryChange =
  | { readonly create: TokenEntry }
  | { readonly revoke: string; readonly canOpen: boolean };

/** The table after the change, or the reason for a refusal. */
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

/** Whether there is an admin token. If there is one, every request needs a token. */
export function hasAdmin(entries: readonly TokenEntry[]): boolean {
  return entries.some(({ role }) => role === 'admin');
}
