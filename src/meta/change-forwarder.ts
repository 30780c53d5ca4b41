/**
 * Carries a change of the nodes to the node that leads group 0, and what became of it back. A change is forwarded
 * once: whoever receives it decides, or says that it does not lead.
 */
import type { NodeId } from '../../raft/types.ts';
import { ConfigError, validateNode } from '../config/config.ts';
import { FrameError } from '../wire/frame.ts';
import { Fields, pack, unpack } from '../wire/fields.ts';
import type { MetaGroup, NodeChangeResult } from './meta-group.ts';
import type { NodeChange } from './meta-state.ts';

export interface ChangeForwarderInit {
  readonly meta: MetaGroup;
  readonly isConnected: (peer: NodeId) => boolean;
  /** Sends one frame; false if it was dropped. */
  readonly send: (to: NodeId, type: 'change' | 'changed', payload: Uint8Array) => boolean;
  /** Where correlation ids start; random, so that results meant for an earlier process of this node match nothing. */
  readonly firstId: number;
}

type Done = (result: NodeChangeResult) => void;

/** Changes on their way to the leader; more are refused. */
const OUTSTANDING_MAX = 64;
/** A leader that does not answer for so long may still do what it was asked. */
const PATIENCE_TICKS = 500;
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
] as const satisfies readonly Extract<NodeChangeResult, { ok: false }>['reason'][];

export class ChangeForwarder {
  readonly #init: ChangeForwarderInit;
  readonly #outstanding = new Map<number, { readonly to: NodeId; readonly untilTick: number; done: Done }>();
  #nextId: number;
  #ticks = 0;

  constructor(init: ChangeForwarderInit) {
    this.#init = init;
    this.#nextId = init.firstId;
  }

  /** `done` is told once, unless this process ends before. */
  change(change: NodeChange, done: Done): void {
    const { meta, isConnected, send } = this.#init;
    const { leader } = meta;
    if (meta.isLeader || leader === 0 || !isConnected(leader)) {
      meta.change(change, done);
      return;
    }
    if (this.#outstanding.size >= OUTSTANDING_MAX) {
      done({ ok: false, reason: 'overloaded' });
      return;
    }
    const id = this.#nextId;
    this.#nextId += 1;
    this.#outstanding.set(id, { to: leader, untilTick: this.#ticks + PATIENCE_TICKS, done });
    const isSent = send(leader, 'change', encodeChange(id, change));
    if (!isSent) this.#finish(id, { ok: false, reason: 'notLeader', leader });
  }

  /** @throws FrameError if it is malformed */
  receiveChange(from: NodeId, payload: Uint8Array): void {
    const { id, change } = decodeChange(payload);
    this.#init.meta.change(change, (result) => {
      this.#init.send(from, 'changed', encodeResult(id, result));
    });
  }

  /** Believed only if that node was asked. @throws FrameError if it is malformed */
  receiveResult(from: NodeId, payload: Uint8Array): void {
    const { id, result } = decodeResult(payload);
    if (this.#outstanding.get(id)?.to === from) this.#finish(id, result);
  }

  /** The connection to `peer` broke: what it was asked may or may not happen. */
  peerDisconnected(peer: NodeId): void {
    for (const [id, { to }] of this.#outstanding) if (to === peer) this.#finish(id, LOST);
  }

  tick(): void {
    this.#ticks += 1;
    for (const [id, { untilTick }] of this.#outstanding) {
      if (untilTick > this.#ticks) return;
      this.#finish(id, LOST);
    }
  }

  #finish(id: number, result: NodeChangeResult): void {
    const outstanding = this.#outstanding.get(id);
    this.#outstanding.delete(id);
    outstanding?.done(result);
  }
}

const LOST: NodeChangeResult = { ok: false, reason: 'unknownOutcome' };

function encodeChange(id: number, { add, remove }: NodeChange): Buffer {
  const { http, peer } = add ?? {};
  return pack([id, remove ?? null, add?.id ?? null, http?.host, http?.port, peer?.host, peer?.port]);
}

function decodeChange(payload: Uint8Array): { readonly id: number; readonly change: NodeChange } {
  const fields = new Fields(unpack(payload));
  const id = fields.integer('id');
  const remove = fields.optionalInteger('remove');
  const node = fields.optionalInteger('add');
  const http = { host: fields.optionalString('http.host'), port: fields.optionalInteger('http.port') };
  const peer = { host: fields.optionalString('peer.host'), port: fields.optionalInteger('peer.port') };
  try {
    return {
      id,
      change: {
        ...(node !== undefined && { add: validateNode({ id: node, http, peer }, 'add') }),
        ...(remove !== undefined && { remove }),
      },
    };
  } catch (error) {
    if (error instanceof ConfigError) throw new FrameError(`change of the nodes: ${error.message}`);
    throw error;
  }
}

function encodeResult(id: number, result: NodeChangeResult): Buffer {
  if (result.ok) return pack([id, true, result.version]);
  const leader = result.reason === 'notLeader' ? result.leader : 0;
  return pack([id, false, REASONS.indexOf(result.reason), leader]);
}

function decodeResult(payload: Uint8Array): { readonly id: number; readonly result: NodeChangeResult } {
  const fields = new Fields(unpack(payload));
  const id = fields.integer('id');
  if (fields.boolean('ok')) return { id, result: { ok: true, version: fields.integer('version') } };
  const reason = fields.oneOf(REASONS, 'reason');
  const leader = fields.integer('leader');
  return { id, result: reason === 'notLeader' ? { ok: false, reason, leader } : { ok: false, reason } };
}
