/** Changes of the nodes, and what became of them, on their way between nodes. */
import type { NodeChange, NodeChangeResult } from '../../src/api/node-change.ts';
import { describe, expect, it } from 'vitest';
import { pack } from '../../src/wire/fields.ts';
import { FrameError } from '../../src/wire/frame.ts';
import {
  decodeChangeResult,
  decodeNodeChange,
  encodeChangeResult,
  encodeNodeChange,
} from '../../src/wire/node-changes.ts';

const NODE = { id: 4, http: { host: 'h', port: 1 }, peer: { host: 'h', port: 2 } };

describe('a change of the nodes', () => {
  it.each<[NodeChange]>([[{}], [{ add: NODE }], [{ remove: 3 }], [{ add: NODE, remove: 3 }]])(
    'arrives as it was sent: %j',
    (change) => {
      expect(decodeNodeChange(encodeNodeChange({ id: 7, change }))).toEqual({ id: 7, change });
    },
  );

  it.each([[[1]], [[1, null, 4, 'h', 70_000, 'h', 2]], [[1, null, 0, 'h', 7, 'h', 2]]])(
    'that makes no sense is a FrameError: %j',
    (value) => {
      expect(() => decodeNodeChange(pack(value))).toThrow(FrameError);
    },
  );
});

describe('what became of it', () => {
  it.each<[NodeChangeResult]>([
    [{ ok: true, version: 7 }],
    [{ ok: false, reason: 'tooFewNodes' }],
    [{ ok: false, reason: 'unknownOutcome' }],
    [{ ok: false, reason: 'notLeader', leader: 3 }],
  ])('arrives as it was sent: %j', (result) => {
    expect(decodeChangeResult(encodeChangeResult({ id: 7, result }))).toEqual({ id: 7, result });
  });

  it.each([[[1]], [[1, true, 'x']], [[1, false, 99, 0]]])('of another shape is a FrameError: %j', (value) => {
    expect(() => decodeChangeResult(pack(value))).toThrow(FrameError);
  });
});
