/**
 * Suspects nodes that do not answer. An open connection proves little: a stopped process keeps its connections, and
 * a path that is cut in one direction still delivers a leader's heartbeats. So a node that owes an answer for a
 * while gets a ping, which needs no disk and no decision; if it does not answer that either, it is suspected until
 * it answers something. Raft heartbeats do not count, as they say nothing about the path to the node.
 *
 * It counts ticks and not time, so a process that was paused does not suspect everybody when it resumes.
 */
import type { NodeId } from '../../raft/types.ts';

/** What `FailureDetector` needs. */
export interface FailureDetectorInit {
  /** Sends a ping (an empty frame of requests). */
  readonly ask: (peer: NodeId) => void;
  /** Called when `peer` becomes suspected. */
  readonly suspected: (peer: NodeId) => void;
  /** A node that owes an answer is suspected after this many ticks without one. */
  readonly silentTicksMax: number;
}

interface Peer {
  /** Number of unanswered requests. */
  open: number;
  /** Ticks since it owes an answer; undefined: it owes none. */
  silentTicks: number | undefined;
  isSuspected: boolean;
}

/** Pings per `silentTicksMax`: more than one, as a round trip takes time and a ping may get lost. */
const SIGNS_ASKED_FOR = 4;

/** Watches all nodes that this node sends requests to. */
export class FailureDetector {
  readonly #init: FailureDetectorInit;
  readonly #peers = new Map<NodeId, Peer>();

  constructor(init: FailureDetectorInit) {
    this.#init = init;
  }

  /** The node has not answered for too long. */
  suspects(peer: NodeId): boolean {
    return this.#peers.get(peer)?.isSuspected ?? false;
  }

  /** A request was sent to `peer`. */
  asked(peer: NodeId): void {
    let known = this.#peers.get(peer);
    if (known === undefined) {
      known = { open: 0, silentTicks: undefined, isSuspected: false };
      this.#peers.set(peer, known);
    }
    known.open += 1;
    known.silentTicks ??= 0;
  }

  /** A request to `peer` is not waited for any more, for any reason. */
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

  /** The connection to `peer` broke, so what was sent over it will not be answered. */
  disconnected(peer: NodeId): void {
    this.#peers.delete(peer);
  }

  /** Call once per tick. */
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
