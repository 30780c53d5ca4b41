/**
 * The frames of a change on its way to the leader of group 0, and of what became of it. A change is written as the log has it. What is
 * read comes from another node: a wrong shape is a FrameError.
 */
import { CHANGE_FAILURES, type ChangeResult, type NodeBehind } from '../api/cluster-change.ts';
import { array, Fields, pack, unpack } from '../wire/fields.ts';
import { FrameError } from '../wire/frame.ts';
import { encodeMeta, maybeChange } from './meta-form.ts';
import type { MetaChange } from './cluster-state.ts';

export interface ForwardedChange {
  /** Drawn by the node that asks; the result bears the same. */
  readonly id: number;
  readonly change: MetaChange;
}

export interface ForwardedResult {
  /** As the change bore it. */
  readonly id: number;
  readonly result: ChangeResult;
}

export function encodeChange({ id, change }: ForwardedChange): Buffer {
  return pack([id, encodeMeta(change)]);
}

/** @throws FrameError if it is malformed */
export function decodeChange(payload: Uint8Array): ForwardedChange {
  const fields = new Fields(unpack(payload));
  const id = fields.integer('id');
  const change = maybeChange(fields.bytes('change'));
  if (change === undefined) throw new FrameError('this is no change of the cluster');
  return { id, change };
}

/** Group 0 tells no more of it: the rest is for the node that asked to add. */
export function encodeResult({ id, result }: ForwardedResult): Buffer {
  if (result.ok) return pack([id, true, result.version]);
  const { reason, message, leader, behind } = result;
  const rows = behind?.map(({ node, speaks }) => [node, speaks]);
  return pack([id, false, reason, message, leader, rows]);
}

/** @throws FrameError if it is malformed */
export function decodeResult(payload: Uint8Array): ForwardedResult {
  const fields = new Fields(unpack(payload));
  const id = fields.integer('id');
  if (fields.boolean('ok')) return { id, result: { ok: true, version: fields.integer('version') } };
  const reason = fields.string('reason');
  if (!isReason(reason)) throw new FrameError('reason is none that is known');
  const message = fields.optionalString('message');
  const leader = fields.optionalInteger('leader');
  const rows = fields.next('behind') ?? undefined;
  const told = {
    ...(message !== undefined && { message }),
    ...(leader !== undefined && { leader }),
    ...(rows !== undefined && { behind: array(rows, 'behind').map(readBehind) }),
  };
  return { id, result: { ok: false, reason, ...told } };
}

function isReason(text: string): text is keyof typeof CHANGE_FAILURES {
  return Object.hasOwn(CHANGE_FAILURES, text);
}

function readBehind(row: unknown): NodeBehind {
  const fields = new Fields(row);
  const node = fields.integer('node');
  const speaks = fields.optionalInteger('speaks');
  return { node, ...(speaks !== undefined && { speaks }) };
}
