/**
 * Suspects nodes that were asked and say nothing. A connection proves little: a stopped process keeps its own, and a
 * path that is cut one way lets a leader's heartbeats through and no request back. Who owes an answer for a while is
 * asked for a sign of life, which costs it no disk and no decision; who does not give one either is suspected, until it
 * speaks again. Heartbeats of Raft are no sign: they tell nothing about the way there.
 *
 * It counts ticks, not time, so that a process that was stopped does not suspect everybody when it goes on.
 */
import type { NodeId } from '../../raft/types.ts';

export interface FailureDetectorInit {
  /** Asks for a sign of life. */
  readonly ask: (peer: NodeId) => void;
  /** From now on `peer` is suspected. */
  readonly suspected: (peer: NodeId) => void;
  /** Ticks without a word from a node that owes one, until it is suspected. */
  readonly silentTicksMax: number;
}

interface Peer {
  /** Requests without an answer. */
  open: number;
  /** Ticks since it owes a word; undefined: it owes none. */
  silentTicks: number | undefined;
  isSuspected: boolean;
}

/** So often in that time a sign of life is asked for: the way there and back takes a part of it, and one may get lost. */
const SIGNS_ASKED_FOR = 4;

export class FailureDetector {
  readonly #init: FailureDetectorInit;
  readonly #peers = new Map<NodeId, Peer>();

  constructor(init: FailureDetectorInit) {
    this.#init = init;
  }

  suspects(peer: NodeId): boolean {
    return this.#peers.get(peer)?.isSuspected ?? false;
  }

  /** A request is on its way to `peer`. */
  asked(peer: NodeId): void {
    let known = this.#peers.get(peer);
    if (known === undefined) {
      known = { open: 0, silentTicks: undefined, isSuspected: false };
      this.#peers.set(peer, known);
    }
    known.open += 1;
    known.silentTicks ??= 0;
  }

  /** A request to `peer` waits no more, whoever ended that. */
  ended(peer: NodeId): void {
    const known = this.#peers.get(peer);
    if (known !== undefined) known.open -= 1;
  }

  /** `peer` answered something. */
  heard(peer: NodeId): void {
    const known = this.#peers.get(peer);
    if (known === undefined) return;
    known.isSuspected = false;
    known.silentTicks = known.open > 0 ? 0 : undefined;
  }

  /** The connection to `peer` broke: nothing that was asked over it will be answered. */
  disconnected(peer: NodeId): void {
    this.#peers.delete(peer);
  }

  tick(): void {
    const { silentTicksMax, ask, suspected } = this.#init;
    const signTicks = Math.max(1, Math.floor(silentTicksMax / SIGNS_ASKED_FOR));
    for (const [peer, known] of this.#peers) {
      if (known.silentTicks === undefined) continue;
      known.silentTicks += 1;
      if (known.silentTicks % signTicks === 0) ask(peer);
      if (known.isSuspected || known.silentTicks < silentTicksMax) continue;
      known.isSuspected = true;
      suspected(peer);
    }
  }
}
