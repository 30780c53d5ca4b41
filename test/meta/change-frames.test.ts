/** The frames of a change of the cluster and of its result. */
import { describe, expect, it } from 'vitest';
import type { ChangeResult } from '../../src/api/cluster-change.ts';
import { validateRuleTable } from '../../src/limiter/rules.ts';
import { decodeChange, decodeResult, encodeChange, encodeResult } from '../../src/meta/change-frames.ts';
import type { MetaChange } from '../../src/meta/cluster-state.ts';
import { pack } from '../../src/wire/fields.ts';
import { FrameError } from '../../src/wire/frame.ts';

const NODE = { id: 4, http: { host: 'h', port: 1 }, peer: { host: 'h', port: 2 } };
const TOKEN = { id: 'abcdefgh', role: 'decide', name: 'gateway', sha256: 'a'.repeat(64) } as const;
const table = validateRuleTable({ version: 8, rules: [{ id: 'a', limit: 3, windowMillis: 1_000 }] });

describe('a change', () => {
  it.each<[MetaChange]>([
    [{ type: 'nodes', change: {} }],
    [{ type: 'nodes', change: { add: NODE } }],
    [{ type: 'nodes', change: { remove: 3 } }],
    [{ type: 'nodes', change: { add: { ...NODE, zone: 'a', host: 'b' }, remove: 3 } }],
    [{ type: 'tokens', change: { create: TOKEN } }],
    [{ type: 'tokens', change: { create: { ...TOKEN, createdMillis: 7 } } }],
    [{ type: 'tokens', change: { revoke: 'abcdefgh', canOpen: false } }],
    [{ type: 'tokens', change: { revoke: 'abcdefgh', canOpen: true } }],
    [{ type: 'drain', change: { node: 2, isDraining: true } }],
    [{ type: 'drain', change: { node: 2, isDraining: false } }],
    [{ type: 'label', change: { node: 2, zone: 'a', host: null } }],
    [{ type: 'upgrade', change: { version: 1 } }],
    [{ type: 'rules', base: 5, table }],
    [{ type: 'rules', base: 5, table, definitions: '[]' }],
    [{ type: 'rules', base: 5, table, matchedBefore: '[]' }],
  ])('is decoded as it was encoded: %j', (change) => {
    expect(decodeChange(encodeChange({ id: 7, change }))).toEqual({ id: 7, change });
  });

  it.each<[unknown]>([
    [{ type: 'nodes' }],
    [{ type: 'nodes', change: { add: { ...NODE, id: 0 } } }],
    [{ type: 'nodes', change: { add: { ...NODE, http: { host: 'h', port: 70_000 } } } }],
    [{ type: 'nodes', change: { add: { ...NODE, draining: true } } }],
    [{ type: 'nodes', change: { remove: '3' } }],
    [{ type: 'tokens' }],
    [{ type: 'tokens', change: { revoke: 'abcdefgh' } }],
    [{ type: 'tokens', change: { revoke: 'ABC', canOpen: true } }],
    [{ type: 'tokens', change: { revoke: ['abcdefgh'], canOpen: true } }],
    [{ type: 'tokens', change: { create: { ...TOKEN, sha256: undefined } } }],
    [{ type: 'tokens', change: { create: { ...TOKEN, role: 'root' } } }],
    [{ type: 'tokens', change: { create: { ...TOKEN, name: '' } } }],
    [{ type: 'tokens', change: { create: { ...TOKEN, sha256: 'secret' } } }],
    [{ type: 'drain', change: { node: 2 } }],
    [{ type: 'drain', change: { node: 0, isDraining: true } }],
    [{ type: 'drain', change: { node: 2, isDraining: 1 } }],
    [{ type: 'label', change: { node: 2 } }],
    [{ type: 'label', change: { node: 2, zone: '-a' } }],
    [{ type: 'upgrade', change: { version: 99 } }],
    [{ type: 'rules', base: 5 }],
    [{ type: 'rules', base: -1, table }],
    [{ type: 'rules', base: 5, table, matchedBefore: 1 }],
    [{ type: 'rules', base: 5, table: { ...table, rules: 'x' } }],
    [{ type: 'settled', version: 3 }],
    [{ type: 'toString', change: {} }],
    ['drain'],
    [null],
  ])('that is invalid, or of a kind that nodes do not forward, is a FrameError: %j', (change) => {
    const bytes = new TextEncoder().encode(JSON.stringify(change));
    expect(() => decodeChange(pack([7, bytes]))).toThrow(FrameError);
  });

  it.each([[[7]], [[7, 'text']], [[7, new Uint8Array(3)]], [['x', new Uint8Array(0)]]])(
    'of another shape is a FrameError: %j',
    (value) => {
      expect(() => decodeChange(pack(value))).toThrow(FrameError);
    },
  );
});

describe('the result of a change', () => {
  it.each<[ChangeResult]>([
    [{ ok: true, version: 7 }],
    [{ ok: false, reason: 'tooFewNodes' }],
    [{ ok: false, reason: 'unknownOutcome' }],
    [{ ok: false, reason: 'notLeader', leader: 3 }],
    [{ ok: false, reason: 'rulesChanged' }],
    [{ ok: false, reason: 'lastAdmin' }],
    [{ ok: false, reason: 'tooFewUndrained', message: 'one of three' }],
    [{ ok: false, reason: 'nodesBehind', behind: [{ node: 2, speaks: 12 }, { node: 3 }] }],
  ])('is decoded as it was encoded: %j', (result) => {
    expect(decodeResult(encodeResult({ id: 7, result }))).toEqual({ id: 7, result });
  });

  it.each([
    [[1]],
    [[1, true, 'x']],
    [[1, false, 'toString', null, null, null]],
    [[1, false, 'notLeader', null]],
    [[1, false, 'notLeader', null, -1, null]],
    [[1, false, 'nodesBehind', null, null, [[]]]],
  ])('of another shape is a FrameError: %j', (value) => {
    expect(() => decodeResult(pack(value))).toThrow(FrameError);
  });
});
