/** Clients that do not give up: a request under one id until it is decided, a change of members until it is complete. */
import type { MembershipChange } from '../../../raft/membership.ts';
import type { MembershipResult } from '../../../raft/driver/multi-raft.ts';
import type { GroupConfig } from '../../../raft/types.ts';
import type { AllowRequest } from '../../../src/api/request.ts';
import type { AllowAnswer } from '../../../src/api/answer.ts';
import type { SimNode } from '../sim-node.ts';
import { check } from '../story.ts';
import type { Client, Cluster } from './cluster.ts';
import { GROUP } from './member-core.ts';

/** Longer than a request's deadline and a tick. */
const PATIENCE_MILLIS = 180;
const AGAIN_MILLIS = 5;
/** Each refusal is two boundaries more. */
const CHANGE_AGAIN_MILLIS = 15;
/** A change that is refused this often for want of a node has to wait for that node. */
const REFUSALS_MAX = 15;

/** Asks one node after the other until one decides. */
export class Question implements Client {
  readonly #cluster: Cluster;
  readonly #request: AllowRequest;
  readonly #isGrant: boolean;
  #next: number;
  #attempt = 0;
  #asking: SimNode | undefined;
  #receipt: string | undefined;
  isDone = false;

  /** @param first the node that is asked first */
  constructor(cluster: Cluster, first: number, request: AllowRequest, expects: 'grant' | 'denial') {
    this.#cluster = cluster;
    this.#request = request;
    this.#isGrant = expects === 'grant';
    this.#next = first - 1;
    cluster.clients.add(this);
    this.#ask();
  }

  #ask(): void {
    const { nodes } = this.#cluster;
    const node = nodes[this.#next % nodes.length];
    this.#next += 1;
    this.#attempt += 1;
    const attempt = this.#attempt;
    this.#cluster.after(PATIENCE_MILLIS, () => this.#again(attempt, 0));
    if (node?.isUp !== true) {
      this.#again(attempt, AGAIN_MILLIS);
      return;
    }
    const { life } = node;
    this.#asking = node;
    if (!this.#cluster.reached(node, 'asked')) return;
    node.allow(this.#request, (answer) => {
      // What a process says after its end reaches nobody.
      if (node.life !== life || !node.isUp || !this.#cluster.reached(node, 'answer')) return;
      this.#cluster.story.tell(
        () => `node ${node.id} answers ${JSON.stringify(this.#request)}: ${JSON.stringify(answer)}`,
      );
      this.#answered(attempt, answer);
    });
  }

  #again(attempt: number, delayMillis: number): void {
    if (this.isDone || this.#attempt !== attempt) return;
    this.#attempt += 1;
    this.#asking = undefined;
    this.#cluster.after(delayMillis, () => {
      if (!this.isDone) this.#ask();
    });
  }

  #answered(attempt: number, answer: AllowAnswer): void {
    switch (answer.kind) {
      case 'unavailable':
        this.#again(attempt, AGAIN_MILLIS);
        return;
      case 'conflict':
      case 'invalid':
        check(false, () => `refused as ${answer.kind}: ${JSON.stringify(this.#request)}, ${answer.message}`);
        return;
      case 'decision': {
        const { limits, raft } = this.#cluster;
        const { decision } = answer;
        limits.answered(GROUP, this.#request, decision, { committedIndex: raft.committedIndex(GROUP) });
        check(
          decision.allowed === this.#isGrant,
          () => `${JSON.stringify(this.#request)} got ${JSON.stringify(decision)}`,
        );
        const receipt = JSON.stringify(decision.decided);
        check(
          !this.#isGrant || (this.#receipt ?? receipt) === receipt,
          () => `${JSON.stringify(this.#request)} was granted as ${this.#receipt} and as ${receipt}`,
        );
        this.#receipt = receipt;
        this.isDone = true;
        return;
      }
    }
  }

  lost(node: SimNode): void {
    if (node === this.#asking) this.#again(this.#attempt, AGAIN_MILLIS);
  }
}

/** Asks whoever leads until a change of members is complete: also if that was refused, or its outcome is not known. */
export class Change implements Client {
  readonly #cluster: Cluster;
  readonly #change: MembershipChange;
  readonly #epoch: number;
  readonly #isDoneIn: (config: GroupConfig) => boolean;
  #attempt = 0;
  #asking: SimNode | undefined;
  #refusals = 0;
  isDone = false;

  /** @param asked the version of the placement that asks, and whether a configuration is what was asked for */
  constructor(
    cluster: Cluster,
    change: MembershipChange,
    asked: { readonly epoch: number; readonly isDoneIn: (config: GroupConfig) => boolean },
  ) {
    this.#cluster = cluster;
    this.#change = change;
    this.#epoch = asked.epoch;
    this.#isDoneIn = asked.isDoneIn;
    cluster.clients.add(this);
    this.#ask();
  }

  #ask(): void {
    this.#attempt += 1;
    const attempt = this.#attempt;
    const node = this.#cluster.leader;
    if (node?.core === undefined) {
      this.#again(attempt, CHANGE_AGAIN_MILLIS);
      return;
    }
    const { life } = node;
    this.#asking = node;
    this.#cluster.after(PATIENCE_MILLIS, () => this.#again(attempt, 0));
    if (!this.#cluster.reached(node, 'asked')) return;
    node.core.raft.changeMembership(GROUP, this.#change, this.#epoch, (result) => {
      if (node.life !== life || !node.isUp || !this.#cluster.reached(node, 'answer')) return;
      this.#cluster.story.tell(
        () => `node ${node.id} changes ${JSON.stringify(this.#change)}: ${JSON.stringify(result)}`,
      );
      this.#answered(attempt, node, result);
    });
  }

  #again(attempt: number, delayMillis: number): void {
    if (this.isDone || this.#attempt !== attempt) return;
    this.#attempt += 1;
    this.#asking = undefined;
    this.#cluster.after(delayMillis, () => {
      if (!this.isDone) this.#ask();
    });
  }

  #answered(attempt: number, node: SimNode, result: MembershipResult): void {
    const config = result.ok ? result.config : node.core?.raft.status(GROUP)?.config;
    const isIn = config !== undefined && config.outgoing.length === 0 && this.#isDoneIn(config);
    if (result.ok) {
      check(isIn, () => `${JSON.stringify(this.#change)} led to ${JSON.stringify(config)}`);
      this.isDone = true;
      return;
    }
    switch (result.reason) {
      case 'alreadyMember':
      case 'unknownNode':
        // Refused for this only by a leader that has no change to complete: an earlier attempt did it.
        check(isIn, () => `${JSON.stringify(this.#change)} is refused in ${JSON.stringify(config)}`);
        this.isDone = true;
        return;
      case 'learnerBehind':
      case 'wouldLoseQuorum':
        // An operator brings the node back that is missing.
        this.#refusals += 1;
        if (this.#refusals > REFUSALS_MAX) this.#cluster.revive();
        break;
      case 'invalidChange':
      case 'staleEpoch':
        check(false, () => `${JSON.stringify(this.#change)} is refused: ${result.reason}`);
        break;
      case 'notLeader':
      case 'changePending':
      case 'transferring':
      case 'unknownOutcome':
        break;
    }
    this.#again(attempt, CHANGE_AGAIN_MILLIS);
  }

  lost(node: SimNode): void {
    if (node === this.#asking) this.#again(this.#attempt, CHANGE_AGAIN_MILLIS);
  }
}
