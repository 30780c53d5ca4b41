/** Dispatches everything that comes from peers, frames and connection events, to the parts of the node. */
import type { MultiRaft } from '../../raft/driver/multi-raft.ts';
import type { NodeId } from '../../raft/types.ts';
import type { ClockWatch } from '../clock/clock-watch.ts';
import type { Admission } from '../meta/admission.ts';
import type { Membership } from '../meta/membership.ts';
import type { CapacityWatch } from '../partition/capacity-watch.ts';
import type { Forwarder } from '../router/forwarder.ts';
import type { Router } from '../router/router.ts';
import { decodeAnswers } from '../wire/answers.ts';
import {
  decodePing,
  decodePong,
  decodeGroupsOfVersion,
  decodeLoadReport,
  decodeRoom,
} from '../wire/small-frames.ts';
import type { PeerFrameType } from '../wire/frame.ts';
import type { Hello, Refusal, Sender } from '../wire/hello.ts';
import { decodeChange, decodeResult } from '../meta/change-frames.ts';
import { decodeNodeReport, type NodeReport } from '../wire/node-report.ts';
import { decodePeerMessages } from '../wire/peer-messages.ts';
import { decodeRequests } from '../wire/requests.ts';
import { decodeUsageQuestion, decodeUsageReport } from '../wire/usage.ts';
import type { Leading } from './leading.ts';
import type { UsageExchange } from './usage-exchange.ts';

/** What `PeerEvents` needs. */
export interface PeerEventsInit {
  readonly nodeId: NodeId;
  readonly admission: Admission;
  readonly raft: MultiRaft;
  readonly membership: Membership;
  readonly capacity: CapacityWatch;
  readonly clock: ClockWatch;
  readonly forwarder: Forwarder;
  readonly router: Router;
  readonly usage: UsageExchange;
  readonly leading: Leading;
  /** A peer reported the state of its groups. */
  readonly reported: (report: NodeReport) => void;
}

/** The dispatcher of one node. */
export class PeerEvents {
  readonly #init: PeerEventsInit;

  constructor(init: PeerEventsInit) {
    this.#init = init;
  }

  /** Handles a frame of a peer. @throws FrameError if it is malformed; the connection must be closed then */
  receive(sender: Sender, type: PeerFrameType, payload: Uint8Array): void {
    const { admission, nodeId, raft, membership, capacity, clock } = this.#init;
    const { forwarder, router, usage, leading, reported } = this.#init;
    const { node: from } = sender;
    const trust = admission.trustIn(sender);
    if (trust === 'refused') return;
    switch (type) {
      case 'peerMessages': {
        const messages = decodePeerMessages(payload, from, nodeId);
        const isTaken =
          trust === 'recorded' ? messages : messages.filter((m) => admission.mayTake(sender, m));
        raft.receive(isTaken);
        return;
      }
      case 'requests':
        forwarder.receiveRequests(from, decodeRequests(payload));
        return;
      case 'answers':
        forwarder.receiveAnswers(from, decodeAnswers(payload));
        return;
      case 'settled':
        membership.receiveSettled(sender, decodeGroupsOfVersion(payload));
        return;
      case 'offers':
        membership.receiveOffers(sender, decodeGroupsOfVersion(payload));
        return;
      case 'change':
        membership.receiveChange(from, decodeChange(payload));
        return;
      case 'changed':
        membership.receiveChanged(from, decodeResult(payload));
        return;
      case 'capacity':
        capacity.heard(from, decodeRoom(payload));
        return;
      case 'ping':
        clock.receivePing(from, decodePing(payload));
        return;
      case 'pong':
        clock.receivePong(from, decodePong(payload));
        return;
      case 'load':
        leading.heard(from, decodeLoadReport(payload));
        return;
      case 'status':
        reported(decodeNodeReport(from, payload));
        return;
      case 'usage':
        // The answer may contain ids of users.
        if (trust === 'recorded') usage.receiveQuestion(from, decodeUsageQuestion(payload));
        return;
      case 'usageReported':
        usage.receiveReported(from, decodeUsageReport(payload));
        return;
      case 'leaving':
        forwarder.peerLeaves(from);
        router.peerLeaves(from);
        return;
    }
  }

  /** A peer with this hello was admitted. */
  introduced(hello: Hello): void {
    this.#init.membership.introduced(hello);
  }

  /** A peer with this hello was refused. */
  unwelcome(hello: Hello, refusal: Refusal): void {
    this.#init.membership.unwelcome(hello, refusal);
  }

  /** `peer` has admitted this node. */
  welcomedBy(peer: NodeId): void {
    this.#init.membership.welcomedBy(peer);
  }

  /** `peer` has refused this node. */
  refusedBy(peer: NodeId, refusal: Refusal): void {
    this.#init.membership.refusedBy(peer, refusal);
  }

  /** The connection from `peer` broke: its process is gone, or cannot reach this node. */
  peerLost(peer: NodeId): void {
    const { membership, raft, forwarder, router } = this.#init;
    membership.peerLost(peer);
    raft.peerLost(peer);
    forwarder.peerLost(peer);
    router.peerUnreachable(peer);
  }

  /** The connection to `peer` broke: the frames sent last may be lost. */
  peerDisconnected(peer: NodeId): void {
    const { forwarder, membership, router, usage } = this.#init;
    forwarder.peerDisconnected(peer);
    usage.peerDisconnected(peer);
    membership.peerDisconnected(peer);
    router.peerUnreachable(peer);
  }
}
