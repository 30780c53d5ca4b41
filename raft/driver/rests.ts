/**
 * Makes idle groups cost nothing. A resting group is not ticked and sends no heartbeats. Instead, nodes exchange beats,
 * each of which replaces a heartbeat in every group on a list (rests-led.ts, rests-followed.ts). Any activity wakes a
 * group, and it resumes as if the last beat had been a heartbeat of its own, so rests decide nothing.
 */
import type { Group } from './group.ts';
import type { Beat, BeatAnswer } from './peer-message.ts';
import { FollowedRests } from './rests-followed.ts';
import { LedRests, type RestsInit } from './rests-led.ts';
import type { NodeId } from '../types.ts';

/** The resting groups of a node. */
export class Rests {
  readonly #init: RestsInit;
  readonly #led: LedRests;
  readonly #followed: FollowedRests;
  /** All groups of this node that do not rest. */
  readonly #awake = new Set<Group>();
  #ticks = 0;

  constructor(init: RestsInit) {
    this.#init = init;
    this.#led = new LedRests(init);
    this.#followed = new FollowedRests(init);
  }

  /** The groups to tick. */
  get awake(): Iterable<Group> {
    return this.#awake;
  }

  /** The group is active, and may be new here: wakes it and restarts its quiet time. */
  busy(group: Group): void {
    group.busyTick = this.#ticks;
    this.wake(group);
  }

  /** Wakes the group if it rests. */
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

  /** Counts a tick: wakes the groups of silent nodes, lets quiet groups rest, and sends beats when they are due. */
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

  /** The connection from `peer` broke: wakes the groups shared with it. */
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
