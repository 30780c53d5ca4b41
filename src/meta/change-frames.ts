/**
 * The frames `change` and `changed`: a change on its way to the leader of group 0, and its result. A change is encoded
 * as in the log. Frames come from other nodes, so a wrong shape is a FrameError.
 */
import { CHANGE_FAILURES, type ChangeResult, type NodeBehind } from '../api/cluster-change.ts';
import { array, Fields, pack, unpack } from '../wire/fields.ts';
import { FrameError } from '../wire/frame.ts';
import { encodeMeta, maybeChange } from './meta-form.ts';
import type { MetaChange } from './cluster-state.ts';

/** A change that one node forwards to another. */
export interface ForwardedChange {
  /** Chosen by the node that forwards; the result repeats it. */
  readonly id: number;
  readonly change: MetaChange;
}

/** The result of a forwarded change. */
export interface ForwardedResult {
  /** The id of the change. */
  readonly id: number;
  readonly result: ChangeResult;
}

/** Encodes a change as the payload of a `change` frame. */
export function encodeChange({ id, change }: ForwardedChange): Buffer {
  return pack([id, encodeMeta(change)]);
}

/**
 * Decodes the payload of a `change` frame.
 *
 * @throws FrameError if it is malformed
 */
export function decodeChange(payload: Uint8Array): ForwardedChange {
  const fields = new Fields(unpack(payload));
  const id = fields.integer('id');
  const change = maybeChange(fields.bytes('change'));
  if (change === undefined) throw new FrameError('this is not a change of the cluster');
  return { id, change };
}

/** Encodes a result. Only the fields that group 0 sets are sent; the node that forwarded the change adds the rest. */
export function encodeResult({ id, result }: ForwardedResult): Buffer {
  if (result.ok) return pack([id, true, result.version]);
  const { reason, message, leader, behind } = result;
  const rows = behind?.map(({ node, speaks }) => [node, speaks]);
  return pack([id, false, reason, message, leader, rows]);
}

/**
 * Decodes the payload of a `changed` frame.
 *
 * @throws FrameError if it is malformed
 */
export function decodeResult(payload: Uint8Array): ForwardedResult {
  const fields = new Fields(unpack(payload));
  const id = fields.integer('id');
  if (fields.boolean('ok')) return { id, result: { ok: true, version: fields.integer('version') } };
  const reason = fields.string('reason');
  if (!isReason(reason)) throw new FrameError('reason is unknown');
  const message = fields.optionalString('message');
  const leader = fields.optionalInteger('leader');
  const rows = fields.next('behind') ?? undefined;
  const details = {
    ...(message !== undefined && { message }),
    ...(leader !== undefined && { leader }),
    ...(rows !== undefined && { behind: array(rows, 'behind').map(readBehind) }),
  };
  return { id, result: { ok: false, reason, ...details } };
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
