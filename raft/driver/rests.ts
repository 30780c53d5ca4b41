/**
 * Idle groups cost nothing: they are not ticked and send no heartbeats while they rest. Instead their nodes exchange beats,
 * of which each stands for a heartbeat in every group on a list (rests-led.ts, rests-followed.ts). Whatever happens in a
 * group wakes it, and it goes on as if the last beat had been a heartbeat of its own, so rests decide nothing.
 */
import type { Group } from './group.ts';
import type { Beat, BeatAnswer } from './peer-message.ts';
import { FollowedRests } from './rests-followed.ts';
import { LedRests, type RestsInit } from './rests-led.ts';
import type { NodeId } from '../types.ts';

export class Rests {
  readonly #init: RestsInit;
  readonly #led: LedRests;
  readonly #followed: FollowedRests;
  /** Every group of this node that does not rest. */
  readonly #awake = new Set<Group>();
  #ticks = 0;

  constructor(init: RestsInit) {
    this.#init = init;
    this.#led = new LedRests(init);
    this.#followed = new FollowedRests(init);
  }

  /** Those that time passes for. */
  get awake(): Iterable<Group> {
    return this.#awake;
  }

  /** Something happens in the group, which is perhaps new here: it does not rest, and not soon. */
  busy(group: Group): void {
    group.busyTick = this.#ticks;
    this.wake(group);
  }

  /** The group goes on by itself, if it rests. */
  wake(group: Group): void {
    const { rest } = group;
    group.rest = undefined;
    this.#awake.add(group);
    switch (rest?.kind) {
      case 'led':
        this.#led.wake(group, rest.version);
        return;
      case 'followed':
        this.#followed.wake(group, rest.leader, rest.aheadMillis);
        return;
      case undefined:
        return;
    }
  }

  /** The group leaves this node. */
  forget(group: Group): void {
    this.wake(group);
    this.#awake.delete(group);
  }

  /** Time passed. */
  tick(ticks: number): void {
    this.#ticks = ticks;
    this.#followed.tick(ticks);
    const isBeat = this.#led.tick(ticks);
    for (const node of this.#followed.silent()) this.#lostLeader(node);
    for (const node of this.#led.silent()) this.#lostFollower(node);
    if (!isBeat) return;
    for (const group of this.#awake) if (this.#led.maybeRest(group)) this.#awake.delete(group);
    this.#led.beat();
  }

  /** The connection from `peer` broke. */
  peerLost(peer: NodeId): void {
    this.#lostLeader(peer);
    this.#lostFollower(peer);
  }

  #lostLeader(node: NodeId): void {
    for (const group of this.#followed.withLeader(node)) this.wake(group);
    this.#followed.forget(node);
  }

  #lostFollower(node: NodeId): void {
    for (const group of this.#led.withFollower(node)) this.wake(group);
    this.#led.forget(node);
  }

  receiveBeat(beat: Beat): void {
    if (this.#followed.isOfAnotherProcess(beat)) this.#lostLeader(beat.from);
    const answer = this.#followed.receive(
      beat,
      (group) => this.#awake.delete(group),
      (group) => this.wake(group),
    );
    if (answer !== undefined) this.#init.post(beat.from, answer);
  }

  receiveAnswer(answer: BeatAnswer): void {
    for (const group of this.#led.awakeAt(answer)) this.busy(group);
    this.#led.answered(answer);
  }
}
