/** Tests access by tokens: closing the cluster, revoking, and when a change is acknowledged. */
import { FIRST_RULES } from '../meta/first-rules.ts';
import { describe, expect, it } from 'vitest';
import type { ChangeResult, TokenChange } from '../../src/api/cluster-change.ts';
import type { TokenEntry } from '../../src/api/token.ts';
import { drawToken } from '../../src/config/token-secret.ts';
import { changedTokens } from '../../src/meta/token-table.ts';
import type { MetaState } from '../../src/meta/cluster-state.ts';
import { accessOf, hasTokens } from '../../src/node/access.ts';
import { Tokens } from '../../src/node/tokens.ts';

const NOBODY: MetaState = {
  version: 1,
  settledVersion: 1,
  placement: 'A',
  settledPlacement: 'A',
  rules: FIRST_RULES,
  nodes: [{ id: 1 }, { id: 2 }, { id: 3 }],
  settledNodes: [1, 2, 3],
  leaving: [],
  retired: [],
  clusterVersion: 1,
};

/** Node 1 of three, with a group 0 that makes every change at once. */
class Played {
  state: MetaState | undefined = NOBODY;
  readonly connected = new Set([2, 3]);
  refusing: ChangeResult | undefined;
  readonly tokens: Tokens;

  constructor(configured: readonly TokenEntry[] = []) {
    this.tokens = new Tokens({
      nodeId: 1,
      configured,
      state: () => this.state,
      isConnected: (peer) => this.connected.has(peer),
      wallMillis: () => 1_700_000_000_123.5,
      change: (change, done) => {
        if (this.refusing !== undefined) return done(this.refusing);
        if (change.type !== 'tokens' || this.state === undefined) throw new Error('another change');
        const table = changedTokens(this.state.tokens, change.change);
        if (typeof table === 'string') return done({ ok: false, reason: table });
        this.state = { ...this.state, tokens: table };
        done({ ok: true, version: table.version });
      },
    });
  }

  heard(...nodes: number[]): void {
    const { version: tokensVersion } = this.tokens;
    const reported = { pid: 1, clock: 'fit', partitions: [], speaks: 1, tokensVersion } as const;
    for (const node of nodes) this.tokens.heard({ node, ...reported });
    this.tokens.tick();
  }

  change(change: TokenChange): ChangeResult | undefined {
    let reported: ChangeResult | undefined;
    this.tokens.change(change, (result) => {
      reported = result;
    });
    this.heard(2, 3);
    return reported;
  }

  create(role: 'decide' | 'admin'): NonNullable<Extract<ChangeResult, { ok: true }>['made']> {
    const created = this.change({ create: { role, name: role } });
    if (created?.ok !== true || created.made === undefined)
      throw new Error(`not created: ${JSON.stringify(created)}`);
    return created.made;
  }

  revoke(revoke: string, canOpen = false): ChangeResult | undefined {
    return this.change({ revoke, canOpen });
  }
}

const READ: TokenChange = { create: { role: 'read', name: 'n' } };

const DOUBT = 'the tokens may have been changed: list them, and revoke those whose secret nobody was shown';

describe('the tokens of a node', () => {
  it('close the cluster with the first one of role admin', () => {
    const played = new Played();
    const gateway = played.create('decide');
    expect(played.tokens.mode()).toBe('open');
    const admin = played.create('admin');
    expect(played.tokens.mode()).toBe('closed');
    for (const { token, info } of [gateway, admin])
      expect(played.tokens.callerOf(token)).toMatchObject({ id: info.id, role: info.role });
    expect(played.revoke(admin.info.id, true)?.ok).toBe(true);
    expect(played.tokens.mode()).toBe('open');
  });

  it('are valid until they are revoked, by their text and by their id', () => {
    const played = new Played();
    const { token } = played.create('admin');
    const { token: other, info } = played.create('decide');
    expect(played.tokens.callerById(info.id)?.role).toBe('decide');
    expect(played.revoke(info.id)).toMatchObject({ ok: true, pending: [] });
    expect([played.tokens.callerOf(other), played.tokens.callerById(info.id)]).toEqual([
      undefined,
      undefined,
    ]);
    expect(played.tokens.callerOf(token)?.role).toBe('admin');
  });

  it('are listed without secrets', () => {
    const played = new Played();
    const { token } = played.create('admin');
    const reported = JSON.stringify(played.tokens.tokens());
    expect(reported).toContain('"createdMillis":1700000000123');
    expect(reported).not.toMatch(/sha256|[0-9a-f]{64}/);
    expect(JSON.stringify(played.state)).not.toContain(token.slice(12));
  });

  it('are acknowledged when all reachable nodes know them, naming the unreachable ones', () => {
    const played = new Played();
    played.connected.delete(3);
    const reported: ChangeResult[] = [];
    played.tokens.change(READ, (result) => reported.push(result));
    played.heard();
    expect(reported).toEqual([]);
    played.heard(2);
    expect(reported).toMatchObject([{ ok: true, pending: [3] }]);
  });

  it('are acknowledged after a few seconds even if a node is silent', () => {
    const played = new Played();
    const reported: ChangeResult[] = [];
    played.tokens.change(READ, (result) => reported.push(result));
    for (let tick = 0; tick < 501 && reported.length === 0; tick += 1) played.tokens.tick();
    expect(reported).toMatchObject([{ ok: true, pending: [2, 3] }]);
  });

  it.each([
    ['notLeader', { ok: false, reason: 'notLeader', leader: 0 }],
    ['tooManyTokens', { ok: false, reason: 'tooManyTokens' }],
    ['unknownOutcome', { ok: false, reason: 'unknownOutcome', message: DOUBT }],
  ] as const)('are not shown if group 0 did not accept them: %s', (_reason, refusing) => {
    const played = new Played();
    played.refusing = refusing;
    const reported: ChangeResult[] = [];
    played.tokens.change(READ, (result) => reported.push(result));
    expect(reported).toEqual([refusing]);
  });

  it('in the file count in addition to those of the cluster, and cannot be revoked', () => {
    const { token, entry } = drawToken({ role: 'admin', name: 'init' }, 7);
    const played = new Played([entry]);
    expect(played.tokens.mode()).toBe('closed');
    expect(played.tokens.callerOf(token)?.id).toBe(entry.id);
    expect(played.revoke(entry.id)).toEqual({ ok: false, reason: 'configuredToken' });
    const { info } = played.create('admin');
    // The node stays closed by the token of the file.
    expect(played.revoke(info.id)).toMatchObject({ ok: true, pending: [] });
    expect(played.tokens.tokens()).toHaveLength(1);
  });
});

describe('the listeners of a node that loads', () => {
  const { token, entry } = drawToken({ role: 'admin', name: 'init' }, 7);

  it('are closed by the tokens of its file', () => {
    const access = accessOf({ configured: [entry], tokens: () => undefined, isBehind: () => true });
    expect(access.mode()).toBe('closed');
    expect(access.callerOf(token)?.id).toBe(entry.id);
    expect(access.callerById(entry.id)?.role).toBe('admin');
    expect(access.callerOf(token.replace(/.$/, (last) => (last === 'A' ? 'B' : 'A')))).toBeUndefined();
  });

  it.each([
    [false, {}, undefined],
    [false, { tokens: [{ ...entry, role: 'read' as const }] }, { tokens: { version: 3, isClosed: false } }],
    [true, { tokens: [entry] }, undefined],
    [true, {}, { tokens: { version: 3, isClosed: true } }],
  ])('require tokens, or not, before anything is loaded: %j', (expected, config, known) => {
    expect(hasTokens(config, known)).toBe(expected);
  });

  it('admit no caller while the node knows only that there are tokens', () => {
    let isBehind = true;
    const { tokens } = new Played();
    const access = accessOf({ configured: [], tokens: () => tokens, isBehind: () => isBehind });
    expect(access.mode()).toBe('unknown');
    isBehind = false;
    expect(access.mode()).toBe('open');
  });
});
