/** The frames of a change of the nodes on its way to the leader of group 0, and of what became of it. */
import { InvalidFieldError } from '../api/fields.ts';
import {
  type NodeChange,
  type NodeChangeFailure,
  type NodeChangeResult,
  validateNodeChange,
} from '../api/node-change.ts';
import { Fields, pack, unpack } from './fields.ts';
import { FrameError } from './frame.ts';

export interface ForwardedChange {
  /** Of the node that asks: its result bears the same. */
  readonly id: number;
  readonly change: NodeChange;
}

export interface ForwardedResult {
  /** As the change bore it. */
  readonly id: number;
  readonly result: NodeChangeResult;
}

const REASONS = [
  'emptyChange',
  'retiredNode',
  'nodeExists',
  'unknownNode',
  'tooFewNodes',
  'tooManyNodes',
  'overloaded',
  'unknownOutcome',
  'notLeader',
  'notMember',
] as const satisfies readonly NodeChangeFailure[];

export function encodeNodeChange({ id, change: { add, remove } }: ForwardedChange): Buffer {
  const { http, peer } = add ?? {};
  return pack([id, remove ?? null, add?.id ?? null, http?.host, http?.port, peer?.host, peer?.port]);
}

/** @throws FrameError if it is malformed */
export function decodeNodeChange(payload: Uint8Array): ForwardedChange {
  const fields = new Fields(unpack(payload));
  const id = fields.integer('id');
  const remove = fields.optionalInteger('remove');
  const node = fields.optionalInteger('add');
  const http = { host: fields.optionalString('http.host'), port: fields.optionalInteger('http.port') };
  const peer = { host: fields.optionalString('peer.host'), port: fields.optionalInteger('peer.port') };
  try {
    return {
      id,
      change: validateNodeChange({ add: node === undefined ? node : { id: node, http, peer }, remove }),
    };
  } catch (error) {
    if (error instanceof InvalidFieldError) throw new FrameError(`change of the nodes: ${error.message}`);
    throw error;
  }
}

export function encodeChangeResult({ id, result }: ForwardedResult): Buffer {
  if (result.ok) return pack([id, true, result.version]);
  const leader = result.reason === 'notLeader' ? result.leader : 0;
  return pack([id, false, REASONS.indexOf(result.reason), leader]);
}

/** @throws FrameError if it is malformed */
export function decodeChangeResult(payload: Uint8Array): ForwardedResult {
  const fields = new Fields(unpack(payload));
  const id = fields.integer('id');
  if (fields.boolean('ok')) return { id, result: { ok: true, version: fields.integer('version') } };
  const reason = fields.oneOf(REASONS, 'reason');
  const leader = fields.integer('leader');
  return { id, result: reason === 'notLeader' ? { ok: false, reason, leader } : { ok: false, reason } };
}
