/** A client that does not give up: it repeats a request under one id until it is decided. */
import type { AllowAnswer } from '../../../src/api/answer.ts';
import type { AllowRequest } from '../../../src/api/request.ts';
import type { SimNode } from '../sim-node.ts';
import { check } from '../story.ts';
import type { Client, Cluster } from './cluster.ts';
import { GROUP } from './settings.ts';

/** Longer than a request's deadline and a tick. */
const PATIENCE_MILLIS = 180;
const AGAIN_MILLIS = 5;

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
      // Answers of a process after its end reach no client.
      if (node.life !== life || !node.isUp || !this.#cluster.reached(node, 'answer')) return;
      this.#cluster.story.report(
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
