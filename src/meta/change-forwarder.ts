/**
 * Carries a change of the cluster to the node that leads group 0, and what became of it back. A change is forwarded
 * once: whoever receives it decides, or says that it does not lead.
 */
import { NO_NODE, type NodeId } from '../../raft/types.ts';
import type { NodeBehind } from '../api/upgrade.ts';
import { Calls } from '../wire/calls.ts';
import {
  type ClusterChange,
  type ClusterChangeResult,
  encodeChangeResult,
  encodeClusterChange,
  versionOfChange,
  type ForwardedChange,
  type ForwardedResult,
} from '../wire/cluster-changes.ts';
import type { MetaGroup } from './meta-group.ts';
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
  readonly #calls: Calls<ClusterChange, ClusterChangeResult>;
  #ticks = 0;

  constructor(init: ChangeForwarderInit) {
    this.#init = init;
    this.#calls = new Calls<ClusterChange, ClusterChangeResult>({
      firstId: init.firstId,
      outstandingMax: OUTSTANDING_MAX,
      lateMax: 0,
      notSent: (leader) => ({ ok: false, reason: 'notLeader', leader }),
      lost: { ok: false, reason: 'unknownOutcome' },
    });
  }

  /** `done` is told once, unless this process ends before. */
  change(change: ClusterChange, done: (result: ClusterChangeResult) => void): void {
    const { meta, isConnected, send } = this.#init;
    const { leader } = meta;
    if (meta.isLeader || leader === NO_NODE || !isConnected(leader)) {
      this.#decide(change, done);
      return;
    }
    const behind = this.#behind(change);
    if (behind?.some(({ node, speaks }) => node === leader && speaks !== undefined) === true) {
      done({ ok: false, reason: 'nodesBehind', behind });
      return;
    }
    const until = this.#ticks + PATIENCE_TICKS;
    const call = this.#calls.maybeAsk({ to: leader, request: change, until, done });
    if (call === undefined) {
      done({ ok: false, reason: 'overloaded' });
      return;
    }
    call.isSent = send(leader, 'change', encodeClusterChange({ id: call.id, change }));
    if (!call.isSent) this.#calls.notSent(call);
  }

  /** The nodes that do not know a change of this type, as far as is known here. */
  #behind(change: ClusterChange): readonly NodeBehind[] | undefined {
    const { meta, versions } = this.#init;
    return meta.state && versions.behind(meta.state, versionOfChange(change));
  }

  /** Whoever does not lead says so. */
  #decide(change: ClusterChange, done: (result: ClusterChangeResult) => void): void {
    const { meta, versions } = this.#init;
    const answer = meta.isLeader && meta.state !== undefined && versions.answerTo(change, meta.state);
    if (answer) done(answer);
    else meta.change(change, done);
  }

  receiveChange(from: NodeId, { id, change }: ForwardedChange): void {
    this.#decide(change, (result) => {
      this.#init.send(from, 'changed', encodeChangeResult({ id, result }));
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
