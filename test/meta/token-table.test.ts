/** The access tokens in group 0: their number, which ones can be revoked, and that a snapshot contains them. */
import { FIRST_RULES } from './first-rules.ts';
import { describe, expect, it } from 'vitest';
import { type Role, type TokenEntry, TOKENS_MAX } from '../../src/api/token.ts';
import { decodeMetaCommand, decodeMetaRecord, encodeMeta } from '../../src/meta/meta-form.ts';
import { applyMetaCommand } from '../../src/meta/meta-state.ts';
import type { MetaCommand, MetaRecord } from '../../src/meta/cluster-state.ts';
import { loadHash32 } from '../../src/partition/hash.ts';
import { changedTokens, type TokenTable } from '../../src/meta/token-table.ts';

const hash = await loadHash32();

/** Applies a command as it is decoded from the log. */
function apply(record: MetaRecord | undefined, command: MetaCommand): ReturnType<typeof applyMetaCommand> {
  return applyMetaCommand(record, decodeMetaCommand(encodeMeta(command)), hash);
}

function token(id: string, role: Role = 'admin'): TokenEntry {
  return { id, role, name: 'n', sha256: '0'.repeat(64), createdMillis: 7 };
}

function tableOf(...entries: TokenEntry[]): TokenTable {
  return { version: entries.length, entries };
}

describe('the tokens of group 0', () => {
  it('are created one by one, each under its own version', () => {
    const first = changedTokens(undefined, { create: token('aaaaaaaa', 'read') });
    expect(first).toEqual({ version: 1, entries: [token('aaaaaaaa', 'read')] });
    expect(changedTokens(first as TokenTable, { create: token('bbbbbbbb') })).toEqual({
      version: 2,
      entries: [token('aaaaaaaa', 'read'), token('bbbbbbbb')],
    });
  });

  it('have unique ids, and a maximum number', () => {
    const table = tableOf(...Array.from({ length: TOKENS_MAX }, (_, i) => token(`t${i}`)));
    expect(changedTokens(table, { create: token('t7') })).toBe('tokenExists');
    expect(changedTokens(table, { create: token('new') })).toBe('tooManyTokens');
    const { entries } = changedTokens(table, { revoke: 't7', canOpen: false }) as TokenTable;
    expect(entries).toHaveLength(TOKENS_MAX - 1);
  });

  it('keep their last admin token, unless the cluster may be open again', () => {
    const table = tableOf(token('a'), token('r', 'read'));
    expect(changedTokens(table, { revoke: 'a', canOpen: false })).toBe('lastAdmin');
    expect(changedTokens(table, { revoke: 'a', canOpen: true })).toMatchObject({
      entries: [token('r', 'read')],
    });
    expect(changedTokens(table, { revoke: 'r', canOpen: false })).toMatchObject({ entries: [token('a')] });
    expect(changedTokens(table, { revoke: 'x', canOpen: true })).toBe('unknownToken');
  });

  it('are in the state and its snapshot, and change nothing else', () => {
    const nodes = [{ id: 1, incarnation: 'i' }];
    const { record } = apply(undefined, {
      type: 'create',
      rules: FIRST_RULES,
      nodes,
      replicas: 1,
      partitions: 1,
      clusterVersion: 1,
    });
    const change = { create: token('aaaaaaaa') };
    const changed = apply(record, { type: 'tokens', change });
    expect(changed.record?.state).toEqual({ ...record?.state, tokens: tableOf(token('aaaaaaaa')) });
    expect(decodeMetaRecord([encodeMeta(changed.record as MetaRecord)])).toEqual(changed.record);
    const again = apply(changed.record, { type: 'tokens', change });
    expect(again).toEqual({ record: changed.record, refusal: 'tokenExists' });
  });

  it('do not exist before the cluster is created', () => {
    expect(apply(undefined, { type: 'tokens', change: { create: token('aaaaaaaa') } }).refusal).toBe(
      'unknownToken',
    );
  });
});
