/**
 * Users who now and then peek at the status of others, at any node. Each answer must follow from the log up to the
 * index that it reports, and it must come in time.
 */
import type { LookAnswer, LookRequest } from '../../src/api/look.ts';
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

export interface LookersInit {
  readonly world: ClientWorld;
  readonly isActive: () => boolean;
  /** Since then there is no fault, and every peek must be answered. */
  readonly mustAnswerSince: () => number;
}

interface Look {
  readonly request: LookRequest;
  readonly node: SimNode;
  readonly life: number;
  readonly askedAt: number;
  readonly arrivedMonotonic: number;
  /** The node that answers has applied this entry. */
  readonly leastIndex: number;
  isAnswered: boolean;
}

export class Lookers {
  readonly #init: LookersInit;
  readonly #random: Random;
  readonly #requests: Requests;
  readonly #open = new Set<Look>();

  constructor(init: LookersInit) {
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
    if (settings.features.includes('looks')) this.#next();
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
    const request: LookRequest = { ask: 'look', userId, ...(names && { ruleId }) };
    const look: Look = {
      request,
      node,
      life: node.life,
      askedAt: now(),
      arrivedMonotonic: node.monotonicMillis(),
      leastIndex: limits.lastIndexOf(groupOfPartition(partitionOf(userId))),
      isAnswered: false,
    };
    this.#open.add(look);
    asks.asked(node.id, request);
    node.ask(request, (answer, partition) => this.#answered(look, answer, partition));
  }

  #answered(look: Look, answer: LookAnswer, partition: number): void {
    const { node, request, life } = look;
    const { world, mustAnswerSince } = this.#init;
    check(!look.isAnswered, () => `${JSON.stringify(request)} was answered twice`);
    this.#end(look);
    if (node.life !== life || !node.isUp) return;
    world.story.tell(() => `node ${node.id} answers ${JSON.stringify(request)}: ${JSON.stringify(answer)}`);
    world.story.seen(`look ${answer.kind}`);
    const group = groupOfPartition(partition);
    switch (answer.kind) {
      case 'standing': {
        const took = node.monotonicMillis() - look.arrivedMonotonic;
        const { requestDeadlineMillis } = world.settings.timing;
        check(
          took <= requestDeadlineMillis + LATE_MILLIS_MAX * Math.max(1, node.clock.rate),
          () => `a look was answered after ${took} ms, past its deadline`,
        );
        check(
          answer.standing.decided.index >= look.leastIndex,
          () => `a look tells entry ${answer.standing.decided.index}, and came after ${look.leastIndex}`,
        );
        world.limits.looked(group, request, answer.standing, world.committedIndex(group));
        return;
      }
      case 'invalid':
        check(request.ruleId !== undefined, () => `who looks under all rules is told: ${answer.message}`);
        return;
      case 'unavailable':
        check(!answer.proposed, () => `${JSON.stringify(request)} may have reached a log`);
        check(
          look.askedAt < mustAnswerSince() || answer.reason === 'overloaded',
          () => `nobody answers a look though nothing is broken: ${JSON.stringify(answer)}`,
        );
    }
  }

  #end(look: Look): void {
    look.isAnswered = true;
    this.#open.delete(look);
    this.#init.world.asks.answered(look.node.id, look.request);
  }

  /** A process ended: its clients get no answer. */
  lost(node: SimNode): void {
    for (const look of this.#open) if (look.node === node) this.#end(look);
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
