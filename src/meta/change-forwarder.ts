/**
 * Carries a change of the cluster to the node that leads group 0, and what became of it back. A change is forwarded
 * once: whoever receives it decides, or says that it does not lead.
 */
import { NO_NODE, type NodeId } from '../../raft/types.ts';
import type { ChangeDone, ChangeResult } from '../api/cluster-change.ts';
import { Calls, type Question } from '../wire/calls.ts';
import { encodeChange, encodeResult, type ForwardedChange, type ForwardedResult } from './change-frames.ts';
import type { MetaGroup } from './meta-group.ts';
import type { MetaChange } from './cluster-state.ts';
import type { SpokenVersions } from './versions.ts';

export interface ChangeForwarderInit {
  readonly meta: MetaGroup;
  readonly versions: SpokenVersions;
  readonly isConnected: (peer: NodeId) => boolean;
  /** Sends one frame; false if it was dropped. */
  readonly send: (to: NodeId, type: 'change' | 'changed', payload: Uint8Array) => boolean;
  /** Where correlation ids start: see `Calls`. */
  readonly firstId: number;
}

/** Changes on their way to the leader; more are refused. */
const OUTSTANDING_MAX = 64;
/** A leader that does not answer for so long may still do what it was asked. */
const PATIENCE_TICKS = 500;

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

  /** `done` is told once, unless this process ends before. */
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

  /** Whoever does not lead says so. */
  #decide(change: MetaChange, done: ChangeDone): void {
    const { meta, versions } = this.#init;
    const answer = meta.isLeader && meta.state !== undefined && versions.answerTo(change, meta.state);
    if (answer) done(answer);
    else meta.change(change, done);
  }

  receiveChange(from: NodeId, { id, change }: ForwardedChange): void {
    this.#decide(change, (result) => {
      this.#init.send(from, 'changed', encodeResult({ id, result }));
    });
  }

  /** Believed only if that node was asked. */
  receiveResult(from: NodeId, { id, result }: ForwardedResult): void {
    this.#calls.answered(from, id, result);
  }

  /** The connection to `peer` broke: what it was asked may or may not happen. */
  peerDisconnected(peer: NodeId): void {
    this.#calls.disconnected(peer);
  }

  tick(): void {
    this.#ticks += 1;
    this.#calls.expire(this.#ticks);
  }
}
