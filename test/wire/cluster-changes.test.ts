/** Changes of the nodes, and what became of them, on their way between nodes. */
import type { NodeChange } from '../../src/api/node-change.ts';
import type { TokenChange } from '../../src/api/token.ts';
import { encodeRules, encodeSweep } from '../../src/limiter/log/command.ts';
import { validateRuleTable } from '../../src/limiter/rules.ts';
import { describe, expect, it } from 'vitest';
import { pack } from '../../src/wire/fields.ts';
import { FrameError } from '../../src/wire/frame.ts';
import {
  type ClusterChangeResult,
  decodeChangeResult,
  decodeClusterChange,
  encodeChangeResult,
  encodeClusterChange,
} from '../../src/wire/cluster-changes.ts';

const NODE = { id: 4, http: { host: 'h', port: 1 }, peer: { host: 'h', port: 2 } };

describe('a change of the nodes', () => {
  it.each<[NodeChange]>([[{}], [{ add: NODE }], [{ remove: 3 }], [{ add: NODE, remove: 3 }]])(
    'arrives as it was sent: %j',
    (change) => {
      const sent = { id: 7, change: { type: 'change', change } } as const;
      expect(decodeClusterChange(encodeClusterChange(sent))).toEqual(sent);
    },
  );

  it.each([[[1]], [[1, 0, null, 4, 'h', 70_000, 'h', 2]], [[1, 0, null, 0, 'h', 7, 'h', 2]], [[1, 2]]])(
    'that makes no sense is a FrameError: %j',
    (value) => {
      expect(() => decodeClusterChange(pack(value))).toThrow(FrameError);
    },
  );
});

describe('a change of the tokens', () => {
  const token = { id: 'abcdefgh', role: 'decide', name: 'gateway', sha256: 'a'.repeat(64) } as const;
  const { id, role, name, sha256 } = token;

  it.each<[TokenChange]>([
    [{ create: token }],
    [{ create: { ...token, createdMillis: 7 } }],
    [{ revoke: 'abcdefgh', canOpen: false }],
    [{ revoke: 'abcdefgh', canOpen: true }],
  ])('arrives as it was sent: %j', (change) => {
    const sent = { id: 7, change: { type: 'tokens', change } } as const;
    expect(decodeClusterChange(encodeClusterChange(sent))).toEqual(sent);
  });

  it.each([
    [[7, 2]],
    [[7, 2, 'abcdefgh']],
    [[7, 2, 'ABC', true]],
    [[7, 2, null, id, role, name]],
    [[7, 2, null, id, 'root', name, sha256, null]],
    [[7, 2, null, id, role, '', sha256, null]],
    [[7, 2, null, id, role, name, 'secret', null]],
  ])('that makes no sense is a FrameError: %j', (value) => {
    expect(() => decodeClusterChange(pack(value))).toThrow(FrameError);
  });
});

describe('draining a node', () => {
  it.each([true, false])('arrives as it was sent: %j', (isDraining) => {
    const sent = { id: 7, change: { type: 'drain', change: { node: 2, isDraining } } } as const;
    expect(decodeClusterChange(encodeClusterChange(sent))).toEqual(sent);
  });

  it.each([[[7, 3]], [[7, 3, 2]], [[7, 3, 0, true]], [[7, 3, 2, 1]]])(
    'that makes no sense is a FrameError: %j',
    (value) => {
      expect(() => decodeClusterChange(pack(value))).toThrow(FrameError);
    },
  );
});

describe('a change of the rules', () => {
  const table = validateRuleTable({ version: 8, rules: [{ id: 'a', limit: 3, windowMillis: 1_000 }] });

  it('arrives as it was sent', () => {
    const sent = { id: 7, change: { type: 'rules', base: 5, table } } as const;
    expect(decodeClusterChange(encodeClusterChange(sent))).toEqual(sent);
  });

  it.each([
    [[7, 1]],
    [[7, 1, 5]],
    [[7, 1, -1, encodeRules(table)]],
    [[7, 1, 5, new Uint8Array(3)]],
    [[7, 1, 5, encodeSweep()]],
  ])('that makes no sense is a FrameError: %j', (value) => {
    expect(() => decodeClusterChange(pack(value))).toThrow(FrameError);
  });
});

describe('what became of it', () => {
  it.each<[ClusterChangeResult]>([
    [{ ok: true, version: 7 }],
    [{ ok: false, reason: 'tooFewNodes' }],
    [{ ok: false, reason: 'unknownOutcome' }],
    [{ ok: false, reason: 'notLeader', leader: 3 }],
    [{ ok: false, reason: 'rulesChanged' }],
    [{ ok: false, reason: 'lastAdmin' }],
    [{ ok: false, reason: 'tooFewUndrained' }],
  ])('arrives as it was sent: %j', (result) => {
    expect(decodeChangeResult(encodeChangeResult({ id: 7, result }))).toEqual({ id: 7, result });
  });

  it.each([[[1]], [[1, true, 'x']], [[1, false, 99, 0]]])('of another shape is a FrameError: %j', (value) => {
    expect(() => decodeChangeResult(pack(value))).toThrow(FrameError);
  });
});
