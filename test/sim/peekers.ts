/**
 * Users who now and then peek at the status of others, at any node. Each answer must follow from the log up to the
 * index that it reports, and it must come in time.
 */
import type { PeekAnswer, PeekRequest } from '../../src/api/peek.ts';
import { groupOfPartition } from '../../src/partition/placement.ts';
import type { ClientWorld } from './client-world.ts';
import type { Random } from './random.ts';
import { Requests } from './requests.ts';
import type { SimNode } from './sim-node.ts';
import { check } from './story.ts';

/** Peeks are this much rarer than requests. */
const RARER = 8;
const NAMES_RULE = 0.5;
/** As for requests: a tick, and the answers that a process still lets pass. */
const LATE_MILLIS_MAX = 25;

export interface PeekersInit {
  readonly world: ClientWorld;
  readonly isActive: () => boolean;
  /** Since then there is no fault, and every peek must be answered. */
  readonly mustAnswerSince: () => number;
}

interface Peek {
  readonly request: PeekRequest;
  readonly node: SimNode;
  readonly life: number;
  readonly askedAt: number;
  readonly arrivedMonotonic: number;
  /** The node that answers has applied this entry. */
  readonly leastIndex: number;
  isAnswered: boolean;
}

export class Peekers {
  readonly #init: PeekersInit;
  readonly #random: Random;
  readonly #requests: Requests;
  readonly #open = new Set<Peek>();

  constructor(init: PeekersInit) {
    this.#init = init;
    const { random, settings, now, partitionOf, coverage } = init.world;
    this.#random = random.fork();
    this.#requests = new Requests({
      settings,
      random: this.#random,
      now,
      partitionOf,
      rules: () => coverage.newestRules,
    });
    if (settings.features.includes('peeks')) this.#next();
  }

  #next(): void {
    const { settings, after } = this.#init.world;
    after(this.#random.exponential(RARER * settings.clients.meanMillis), () => {
      if (this.#init.isActive()) this.#ask();
      this.#next();
    });
  }

  #ask(): void {
    const { askable, now, asks, limits, partitionOf } = this.#init.world;
    const nodes = askable();
    if (nodes.length === 0) return;
    const node = this.#random.pick(nodes);
    const { userId, ruleId } = this.#requests.alone();
    const names = this.#random.chance(NAMES_RULE) && ruleId !== undefined;
    const request: PeekRequest = { ask: 'peek', userId, ...(names && { ruleId }) };
    const peek: Peek = {
      request,
      node,
      life: node.life,
      askedAt: now(),
      arrivedMonotonic: node.monotonicMillis(),
      leastIndex: limits.lastIndexOf(groupOfPartition(partitionOf(userId))),
      isAnswered: false,
    };
    this.#open.add(peek);
    asks.asked(node.id, request);
    node.ask(request, (answer, partition) => this.#answered(peek, answer, partition));
  }

  #answered(peek: Peek, answer: PeekAnswer, partition: number): void {
    const { node, request, life } = peek;
    const { world, mustAnswerSince } = this.#init;
    check(!peek.isAnswered, () => `${JSON.stringify(request)} was answered twice`);
    this.#end(peek);
    if (node.life !== life || !node.isUp) return;
    world.story.report(() => `node ${node.id} answers ${JSON.stringify(request)}: ${JSON.stringify(answer)}`);
    world.story.seen(`peek ${answer.kind}`);
    const group = groupOfPartition(partition);
    switch (answer.kind) {
      case 'keyStatus': {
        const took = node.monotonicMillis() - peek.arrivedMonotonic;
        const { requestDeadlineMillis } = world.settings.timing;
        check(
          took <= requestDeadlineMillis + LATE_MILLIS_MAX * Math.max(1, node.clock.rate),
          () => `a peek was answered after ${took} ms, past its deadline`,
        );
        check(
          answer.keyStatus.decided.index >= peek.leastIndex,
          () =>
            `a peek shows entry ${answer.keyStatus.decided.index}, but came after entry ${peek.leastIndex}`,
        );
        world.limits.peeked(group, request, answer.keyStatus, world.committedIndex(group));
        return;
      }
      case 'invalid':
        check(request.ruleId !== undefined, () => `a peek under all rules is refused: ${answer.message}`);
        return;
      case 'unavailable':
        check(!answer.proposed, () => `${JSON.stringify(request)} may have reached a log`);
        check(
          peek.askedAt < mustAnswerSince() || answer.reason === 'overloaded',
          () => `no node answers a peek though nothing is broken: ${JSON.stringify(answer)}`,
        );
    }
  }

  #end(peek: Peek): void {
    peek.isAnswered = true;
    this.#open.delete(peek);
    this.#init.world.asks.answered(peek.node.id, peek.request);
  }

  /** A process ended: its clients get no answer. */
  lost(node: SimNode): void {
    for (const peek of this.#open) if (peek.node === node) this.#end(peek);
  }

  /** At the end of a run no peek is open: each has an answer, or its process ended. */
  checkAnswered(): void {
    const { requestDeadlineMillis } = this.#init.world.settings.timing;
    for (const { node, life, askedAt, request } of this.#open) {
      const isOld = this.#init.world.now() - askedAt > 4 * requestDeadlineMillis;
      const isGone = node.life !== life || !node.isUp || node.isPaused;
      check(isGone || !isOld, () => `node ${node.id} never answered ${JSON.stringify(request)}`);
    }
  }
}
