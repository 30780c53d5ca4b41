/** Helper: the forwarders of two nodes; the test carries their frames. */
import type { AllowRequest } from '../../src/api/request.ts';
import type { Answer } from '../../src/api/user-request.ts';
import type { Partition } from '../../src/partition/partition.ts';
import { Forwarder } from '../../src/router/forwarder.ts';
import { decodeAnswers } from '../../src/wire/answers.ts';
import { decodeRequests } from '../../src/wire/requests.ts';
import { FakePartition, SILENT_TICKS_MAX } from './fixtures.ts';

type FrameKind = 'requests' | 'answers';

/** One node's forwarder. Frames wait in `sent` until the test carries them over. */
export class Side {
  readonly id: number;
  nowMillis = 5_000;
  ageMillis = 0;
  reachable = true;
  /** Bound of forwarded requests; more are shed. */
  openMax = Infinity;
  openCount = 0;
  readonly partition = new FakePartition(4);
  readonly sent: { readonly to: number; readonly kind: FrameKind; readonly payload: Uint8Array }[] = [];
  readonly suspected: number[] = [];
  readonly #deferred: (() => void)[] = [];
  readonly forwarder: Forwarder;

  constructor(id: number, firstId = id * 1_000_000) {
    this.id = id;
    this.forwarder = new Forwarder({
      nodeId: id,
      partitions: new Map<number, unknown>([[4, this.partition]]) as ReadonlyMap<
        number,
        unknown
      > as ReadonlyMap<number, Partition>,
      monotonicMillis: () => this.nowMillis,
      listenerMillis: () => this.nowMillis - this.ageMillis,
      send: (to, kind, payload) => {
        if (this.reachable) this.sent.push({ to, kind, payload });
        return this.reachable;
      },
      gather: (flush) => this.#deferred.push(flush),
      isConnected: () => this.reachable,
      suspected: (node) => this.suspected.push(node),
      silentTicksMax: SILENT_TICKS_MAX,
      shedding: {
        maybeRefuseForwarded: () => this.openMax <= this.openCount || (this.openCount += 1) === 0,
        leftForwarded: () => void (this.openCount -= 1),
      },
      firstId,
    });
  }

  get deferredCount(): number {
    return this.#deferred.length;
  }

  flush(): void {
    for (const flush of this.#deferred.splice(0)) flush();
  }

  /** Hands over a frame of answers as it came from node `from`. */
  receiveAnswers(from: number, payload: Uint8Array): void {
    this.forwarder.receiveAnswers(from, decodeAnswers(payload));
  }

  forward(request: AllowRequest = { userId: 'ada' }, partition = 4, budgetMillis = 1_000): Answer[] {
    const answers: Answer[] = [];
    const deadlineMillis = this.nowMillis + budgetMillis;
    const done = (each: Answer): void => void answers.push(each);
    this.forwarder.forward({ to: 3 - this.id, partition, request, deadlineMillis, relayTo: 0, done });
    return answers;
  }
}

/** Delivers the frames of both until none is left. */
export function carry(a: Side, b: Side): void {
  for (;;) {
    a.flush();
    b.flush();
    const fromA = a.sent.splice(0);
    const fromB = b.sent.splice(0);
    if (fromA.length + fromB.length === 0) return;
    for (const [sender, receiver, frames] of [[a, b, fromA] as const, [b, a, fromB] as const]) {
      for (const { kind, payload } of frames) {
        if (kind === 'requests') receiver.forwarder.receiveRequests(sender.id, decodeRequests(payload));
        else receiver.receiveAnswers(sender.id, payload);
      }
    }
  }
}
