/**
 * The requests that wait for the leader of one partition. While no leader is known, one of them at a time is sent
 * as a probe. When the probe is decided, the others follow. The router chooses the node and sends.
 */
import type { NodeId } from '../../raft/types.ts';
import type { OpenRequest } from './open-request.ts';

interface Probe {
  readonly open: OpenRequest;
  readonly attempt: number;
  /** Ticks since it was sent. */
  ticks: number;
}

/** The queue of one partition. */
export class LeaderQueue {
  #waiting: OpenRequest[] = [];
  #probe: Probe | undefined;

  /** No request waits. */
  get isEmpty(): boolean {
    return this.#waiting.length === 0;
  }

  /** A probe was sent and is not answered yet. */
  get isProbing(): boolean {
    return this.#probe !== undefined;
  }

  /** Adds a request to the end. */
  add(open: OpenRequest): void {
    this.#waiting.push(open);
  }

  /** Removes and returns all requests. */
  takeAll(): OpenRequest[] {
    const taken = this.#waiting;
    this.#waiting = [];
    return taken;
  }

  /** Drops requests that have an answer. */
  prune(): void {
    this.#waiting = this.#waiting.filter(({ isSettled }) => !isSettled);
  }

  /**
   * Removes the request that becomes the next probe; undefined if none waits. It is the youngest one, which has the
   * most time left. One with an id is preferred, as it can be asked elsewhere if the node does not answer.
   */
  takeProbe(): OpenRequest | undefined {
    this.prune();
    const withId = this.#waiting.findLastIndex(({ isRepeatable }) => isRepeatable);
    const open = this.#waiting.splice(withId, 1)[0];
    if (open !== undefined) this.#probe = { open, attempt: open.attempts + 1, ticks: 0 };
    return open;
  }

  /** Ends the probe if this attempt is the probe; returns whether it is. */
  maybeEndProbe(open: OpenRequest, attempt: number): boolean {
    const isProbe = this.#probe?.open === open && this.#probe.attempt === attempt;
    if (isProbe) this.#probe = undefined;
    return isProbe;
  }

  /** Stops waiting for the probe if `node` has it. */
  avoid(node: NodeId): void {
    if (this.#probe?.open.asked === node) this.#probe = undefined;
  }

  /** Call once per tick. Ends a probe that was out for `ticksMax` and returns the node that has it. */
  tick(ticksMax: number): NodeId | undefined {
    const probe = this.#probe;
    if (probe === undefined) return undefined;
    probe.ticks += 1;
    if (!probe.open.isSettled && probe.ticks < ticksMax) return undefined;
    this.#probe = undefined;
    return probe.open.isSettled ? undefined : probe.open.asked;
  }
}
