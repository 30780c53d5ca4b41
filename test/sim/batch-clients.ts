/**
 * Users that send batches through the same function as the API: mostly few requests, named or described, for several
 * partitions, with ids that are reused within the batch or in another, and some that no node can decide. Each item is
 * checked like any other request. This file checks that each item is asked once, in order, and answered in its place.
 */
import type { AskAnswer, Question } from '../../src/api/question.ts';
import { type AllowRequest, COST_MAX } from '../../src/api/request.ts';
import { askBatch } from '../../src/http/batch-route.ts';
import type { ClientWorld } from './client-world.ts';
import type { Clients } from './clients.ts';
import type { DescribedClients } from './described-clients.ts';
import type { Random } from './random.ts';
import type { BatchSettings } from './settings.ts';
import type { SimNode } from './sim-node.ts';
import { check } from './story.ts';

type Item = AllowRequest | Question;

/** How many batched requests are remembered, to be repeated in a later batch. */
const REMEMBERED_MAX = 20;
const DESCRIBED = 0.4;
const AGAIN_INSIDE = 0.12;
const AGAIN_LATER = 0.08;
const UNDECIDABLE = 0.06;
const TRIES_MAX = 3;
const RETRY_MILLIS = 300;
/**
 * A request that may be repeated is not marked as a first attempt, so that no check concludes from one answer that it
 * was not proposed.
 */
const NOT_THE_FIRST = 2;

interface BatchClientsInit {
  readonly world: ClientWorld;
  readonly batches: BatchSettings;
  readonly clients: Pick<Clients, 'attempt' | 'draw' | 'isActive'>;
  /** Absent: there are no described requests. */
  readonly described: Pick<DescribedClients, 'askOnce' | 'draw'> | undefined;
  /** When faults end. No batch is large after that, because disks must keep up. */
  readonly calmSince: number;
}

interface Batch {
  readonly node: SimNode;
  readonly life: number;
  readonly items: readonly Item[];
  readonly tries: number;
  /** The node's answer for each item, by its place. */
  readonly said: (AskAnswer | undefined)[];
  askedCount: number;
  saidCount: number;
  isAnswered: boolean;
  isLost: boolean;
}

class BatchClients {
  readonly #init: BatchClientsInit;
  readonly #random: Random;
  readonly #remembered: Item[] = [];

  constructor(init: BatchClientsInit) {
    this.#init = init;
    this.#random = init.world.random.fork();
  }

  start(): void {
    this.#next();
  }

  #next(): void {
    const { world, batches } = this.#init;
    world.after(this.#random.exponential(batches.meanMillis), () => {
      this.#maybeAsk(() => this.#draw(), 1);
      this.#next();
    });
  }

  #maybeAsk(draw: () => readonly Item[], tries: number): void {
    const { world, clients } = this.#init;
    const nodes = world.askable();
    if (clients.isActive && nodes.length > 0) this.#ask(this.#random.pick(nodes), draw(), tries);
  }

  #size(): number {
    const random = this.#random;
    if (random.chance(0.8)) return random.between(1, 5);
    const isCalm = this.#init.world.now() >= this.#init.calmSince;
    if (isCalm || random.chance(0.85)) return random.between(2, 20);
    return random.chance(0.9) ? random.between(21, 200) : 1_000;
  }

  #draw(): readonly Item[] {
    const items: Item[] = [];
    const size = this.#size();
    while (items.length < size) {
      const item = this.#repeated(items) ?? this.#new();
      items.push(item);
      if (item.requestId !== undefined) this.#remembered.push(item);
    }
    this.#remembered.splice(0, Math.max(0, this.#remembered.length - REMEMBERED_MAX));
    this.#reported(items);
    return items;
  }

  /** Repeats an item of this batch or of an earlier one, as a copy, because each item is asked separately. */
  #repeated(items: readonly Item[]): Item | undefined {
    const random = this.#random;
    const inside = items.filter(({ requestId }) => requestId !== undefined);
    if (inside.length > 0 && random.chance(AGAIN_INSIDE)) {
      this.#init.world.story.seen('batch id again inside');
      return { ...random.pick(inside) };
    }
    if (this.#remembered.length === 0 || !random.chance(AGAIN_LATER)) return undefined;
    this.#init.world.story.seen('batch id of a batch before');
    return { ...random.pick(this.#remembered) };
  }

  #new(): Item {
    const { clients, described } = this.#init;
    const random = this.#random;
    const item = described !== undefined && random.chance(DESCRIBED) ? described.draw() : clients.draw();
    if (!random.chance(UNDECIDABLE)) return item;
    if ('descriptors' in item || random.chance(0.5)) return { ...item, cost: COST_MAX };
    const { further: _, askedDigest: __, timestampMillis: ___, ...plain } = item;
    return { ...plain, ruleId: 'noSuchRule' };
  }

  #reported(items: readonly Item[]): void {
    const { story, partitionOf } = this.#init.world;
    const { length } = items;
    story.seen(
      `batch of ${length === 1 ? 1 : length < 10 ? '2-9' : length < 100 ? '10-99' : length < 1_000 ? '100-999' : 1_000}`,
    );
    const stated = items.flatMap((item) => ('descriptors' in item ? [] : [partitionOf(item.userId)]));
    if (new Set(stated).size > 1) story.seen('batch of several partitions');
    if (stated.length > 0 && stated.length < length) story.seen('batch of both forms');
  }

  #ask(node: SimNode, items: readonly Item[], tries: number): void {
    const batch: Batch = {
      node,
      life: node.life,
      items,
      tries,
      said: [],
      askedCount: 0,
      saidCount: 0,
      isAnswered: false,
      isLost: false,
    };
    askBatch<Item, AskAnswer>({ ask: (request, done) => this.#askOne(batch, request, done) }, items, {
      reported: (_, answer) => answer,
      done: (answers) => this.#answered(batch, answers),
    });
    check(
      batch.askedCount === items.length,
      () => `only ${batch.askedCount} requests of a batch of ${items.length} are asked`,
    );
  }

  #askOne(batch: Batch, request: Item, done: Say): void {
    const { node, life, items } = batch;
    const place = batch.askedCount;
    batch.askedCount += 1;
    check(
      items[place] === request,
      () =>
        `request ${place} of a batch is ${JSON.stringify(items[place])}, but asked is ${JSON.stringify(request)}`,
    );
    // The node died of an earlier event, and the connection with it.
    if (!node.isOpen || node.life !== life) return;
    const { clients, described } = this.#init;
    if ('descriptors' in request)
      described?.askOnce(node, request, (answer, partition) =>
        this.#said(batch, place, { answer, partition, done }),
      );
    else
      clients.attempt(
        node,
        request,
        request.requestId === undefined ? 1 : NOT_THE_FIRST,
        (answer, partition) => {
          if (answer === undefined) this.#lost(batch);
          else this.#said(batch, place, { answer, partition, done });
        },
      );
  }

  #said(
    batch: Batch,
    place: number,
    {
      answer,
      partition,
      done,
    }: { readonly answer: AskAnswer; readonly partition: number; readonly done: Say },
  ): void {
    batch.said[place] = answer;
    batch.saidCount += 1;
    this.#init.world.story.seen(`batch item ${wordOf(answer)}`);
    done(answer, partition);
    check(
      batch.isAnswered === (batch.saidCount === batch.items.length),
      () =>
        `a batch of ${batch.items.length} is ${batch.isAnswered ? '' : 'not '}answered with ${batch.saidCount}`,
    );
  }

  #answered(batch: Batch, answers: readonly AskAnswer[]): void {
    const { items, said } = batch;
    check(!batch.isAnswered, () => `a batch of ${items.length} is answered twice`);
    batch.isAnswered = true;
    for (const [i, item] of items.entries())
      check(
        said[i] !== undefined && answers[i] === said[i],
        () =>
          `request ${i} of a batch is ${JSON.stringify(item)}, its answer ${JSON.stringify(said[i])}, and the batch says ${JSON.stringify(answers[i])}`,
      );
    check(answers.length === items.length, () => `${answers.length} answers to a batch of ${items.length}`);
    this.#init.world.story.seen('batch answered');
  }

  /** Its node is gone: the whole body is sent again, to another node. */
  #lost(batch: Batch): void {
    if (batch.isLost) return;
    batch.isLost = true;
    this.#init.world.story.seen('batch lost');
    if (batch.tries >= TRIES_MAX || !this.#random.chance(0.6)) return;
    const again = (): readonly Item[] => batch.items.map((item) => ({ ...item }));
    this.#init.world.after(this.#random.exponential(RETRY_MILLIS), () =>
      this.#maybeAsk(again, batch.tries + 1),
    );
  }
}

/** Starts the clients that send batches, if the world has them. */
export function sendBatches(
  world: ClientWorld,
  clients: BatchClientsInit['clients'],
  described: BatchClientsInit['described'],
): void {
  const { batches, safetyMillis } = world.settings;
  if (batches === undefined) return;
  new BatchClients({ world, batches, clients, described, calmSince: world.now() + safetyMillis }).start();
}

type Say = (answer: AskAnswer, partition: number) => void;

function wordOf(answer: AskAnswer): string {
  if (answer.kind !== 'decision') return answer.kind;
  return answer.decision.allowed ? 'granted' : 'denied';
}
