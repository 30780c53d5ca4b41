/**
 * Forwards a change of the cluster to the leader of group 0, and returns the result. A change is forwarded only once:
 * the node that receives it decides, or answers that it does not lead.
 */
import { NO_NODE, type NodeId } from '../../raft/types.ts';
import type { ChangeDone, ChangeResult } from '../api/cluster-change.ts';
import { Calls, type Question } from '../wire/calls.ts';
import { encodeChange, encodeResult, type ForwardedChange, type ForwardedResult } from './change-frames.ts';
import type { MetaGroup } from './meta-group.ts';
import type { MetaChange } from './cluster-state.ts';
import type { SpokenVersions } from './versions.ts';

/** What the forwarder is created with. */
export interface ChangeForwarderInit {
  readonly meta: MetaGroup;
  readonly versions: SpokenVersions;
  readonly isConnected: (peer: NodeId) => boolean;
  /** Sends one frame; false if it was dropped. */
  readonly send: (to: NodeId, type: 'change' | 'changed', payload: Uint8Array) => boolean;
  /** The first correlation id, see `Calls`. */
  readonly firstId: number;
}

/** The maximum number of forwarded changes without an answer; more are refused. */
const OUTSTANDING_MAX = 64;
/** After this time without an answer the outcome is reported as unknown: the leader may still make the change. */
const PATIENCE_TICKS = 500;

/** Forwards the changes that clients request from this node. */
export class ChangeForwarder {
  readonly #init: ChangeForwarderInit;
  readonly #calls: Calls<Question<ChangeResult>, ChangeResult>;
  #ticks = 0;

  constructor(init: ChangeForwarderInit) {
    this.#init = init;
    this.#calls = new Calls<Question<ChangeResult>, ChangeResult>({
      firstId: init.firstId,
      outstandingMax: OUTSTANDING_MAX,
      lateMax: 0,
      notSent: (leader) => ({ ok: false, reason: 'notLeader', leader }),
      lost: { ok: false, reason: 'unknownOutcome' },
    });
  }

  /** Makes a change or forwards it. Calls `done` once, unless this process ends before. */
  change(change: MetaChange, done: ChangeDone): void {
    const { meta, versions, isConnected, send } = this.#init;
    const { leader } = meta;
    if (meta.isLeader || leader === NO_NODE || !isConnected(leader)) return this.#decide(change, done);
    const answer = meta.state && versions.unknownTo(leader, change, meta.state);
    if (answer !== undefined) return done(answer);
    const until = this.#ticks + PATIENCE_TICKS;
    const call = this.#calls.maybeAsk({ to: leader, done }, until);
    if (call === undefined) return done({ ok: false, reason: 'overloaded' });
    call.isSent = send(leader, 'change', encodeChange({ id: call.id, change }));
    if (!call.isSent) this.#calls.notSent(call);
  }

  /** Decides the change if this node leads, else answers that it does not. */
  #decide(change: MetaChange, done: ChangeDone): void {
    const { meta, versions } = this.#init;
    const answer = meta.isLeader && meta.state !== undefined && versions.answerTo(change, meta.state);
    if (answer) done(answer);
    else meta.change(change, done);
  }

  /** Another node forwarded a change. */
  receiveChange(from: NodeId, { id, change }: ForwardedChange): void {
    this.#decide(change, (result) => {
      this.#init.send(from, 'changed', encodeResult({ id, result }));
    });
  }

  /** The result of a forwarded change. Ignored unless the change went to that node. */
  receiveResult(from: NodeId, { id, result }: ForwardedResult): void {
    this.#calls.answered(from, id, result);
  }

  /** The connection to `peer` broke: the outcome of its changes is unknown. */
  peerDisconnected(peer: NodeId): void {
    this.#calls.disconnected(peer);
  }

  tick(): void {
    this.#ticks += 1;
    this.#calls.expire(this.#ticks);
  }
}
