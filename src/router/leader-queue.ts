/**
 * The requests that wait for the leader of one partition. While nobody is known, one of them at a time is sent to find
 * out: the probe. The others follow when it was decided. It asks nobody itself, and does not choose whom to ask.
 */
import type { NodeId } from '../../raft/types.ts';
import type { OpenRequest } from './open-request.ts';

interface Probe {
  readonly open: OpenRequest;
  readonly attempt: number;
  /** Since it was sent. */
  ticks: number;
}

export class LeaderQueue {
  #waiting: OpenRequest[] = [];
  #probe: Probe | undefined;

  /** Nothing waits. */
  get isEmpty(): boolean {
    return this.#waiting.length === 0;
  }

  get isProbing(): boolean {
    return this.#probe !== undefined;
  }

  add(open: OpenRequest): void {
    this.#waiting.push(open);
  }

  /** All that wait: nothing does any more. */
  takeAll(): OpenRequest[] {
    const taken = this.#waiting;
    this.#waiting = [];
    return taken;
  }

  /** Forgets what has its answer. */
  prune(): void {
    this.#waiting = this.#waiting.filter(({ isSettled }) => !isSettled);
  }

  /**
   * Takes the request whose next attempt is the probe: the youngest, for it has most of its time left: with the oldest,
   * one after the other would run out of it. One with an id if there is any: if nobody answers it, it can be asked
   * elsewhere. Undefined: nothing waits.
   */
  takeProbe(): OpenRequest | undefined {
    this.prune();
    const withId = this.#waiting.findLastIndex(({ isRepeatable }) => isRepeatable);
    const open = this.#waiting.splice(withId, 1)[0];
    if (open !== undefined) this.#probe = { open, attempt: open.attempts + 1, ticks: 0 };
    return open;
  }

  /** An attempt was answered. Returns whether it was the probe: there is none any more then. */
  maybeEndProbe(open: OpenRequest, attempt: number): boolean {
    const isProbe = this.#probe?.open === open && this.#probe.attempt === attempt;
    if (isProbe) this.#probe = undefined;
    return isProbe;
  }

  /** `node` is not waited for: if it has the probe, there is none any more. */
  avoid(node: NodeId): void {
    if (this.#probe?.open.asked === node) this.#probe = undefined;
  }

  /** Time passed. Returns the node that has had the probe for `ticksMax` by now: there is none any more then. */
  tick(ticksMax: number): NodeId | undefined {
    const probe = this.#probe;
    if (probe === undefined) return undefined;
    probe.ticks += 1;
    if (!probe.open.isSettled && probe.ticks < ticksMax) return undefined;
    this.#probe = undefined;
    return probe.open.isSettled ? undefined : probe.open.asked;
  }
}
