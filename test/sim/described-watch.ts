/**
 * Observes the questions that nodes ask for the limits of described requests, and reports them to all checkers as if a
 * client had asked. It recognises such a question by its deadline: clients name none.
 */
import type { AllowAnswer } from '../../src/api/answer.ts';
import { type CustomerAction, type CustomerAnswer, type CustomerRequest } from '../../src/api/customer.ts';
import type { AskDone, Question } from '../../src/api/question.ts';
import type { PeekAnswer, PeekRequest } from '../../src/api/peek.ts';
import type { RefundAnswer, RefundQuestionDone, RefundRequest } from '../../src/api/refund.ts';
import type { AllowRequest } from '../../src/api/request.ts';
import type { NodeCore } from '../../src/node/node-core.ts';
import { groupOfPartition } from '../../src/partition/placement.ts';
import type { ClientWorld } from './client-world.ts';
import { CustomerWatch } from './customer-watch.ts';
import type { DescribedChecker } from './described-checker.ts';
import { customerKeyOf } from './described-limits.ts';
import {
  isCurrent,
  isOfRules,
  answerOfPart,
  type PartitionQuestion,
  questionOfRefund,
  questionOfRules,
  wordOf,
} from './described-questions.ts';
import { type Asking, newAsking, wordsOfAsking } from './described-rounds.ts';
import { askedBy } from './id-ledger.ts';
import { isNowhere, isRejection } from './rejection-checker.ts';
import type { SimNode } from './sim-node.ts';
import { check } from './story.ts';

export class DescribedWatch {
  readonly #world: ClientWorld;
  readonly #checker: DescribedChecker;
  readonly #open = new Set<PartitionQuestion>();
  /** Not answered yet. */
  readonly #askings = new Set<Asking>();
  /** By process and deadline; no two share them. */
  readonly #byDeadline = new Map<string, Map<number, Asking>>();
  /** By user and id: a repeated request may get the answer of an attempt that still waits. */
  readonly #firstInvoked = new Map<string, number>();
  readonly #customers: CustomerWatch;
  #isOperator = false;

  constructor(world: ClientWorld, checker: DescribedChecker) {
    this.#world = world;
    this.#checker = checker;
    this.#customers = new CustomerWatch(world);
  }

  /** A client asks `node`. `done` gets the answer of its process, unless that comes after the process has ended. */
  ask(node: SimNode, request: Question, done: AskDone): Asking {
    const askedAt = this.#world.now();
    const customer = this.#customers.of(node, customerKeyOf(request.descriptors), askedAt);
    const asking = newAsking(node, request, { askedAt, rulesAtLeast: this.#checker.rulesReported, customer });
    this.#askings.add(asking);
    node.inProcess((core) => {
      const { requestDeadlineMillis } = this.#world.settings.timing;
      this.#ofProcess(node).set(node.arrives() + requestDeadlineMillis, asking);
      core.requests.ask(request, (answer, partition) => {
        if (!isCurrent(node, asking.life)) return;
        check(!asking.isAnswered, () => `${JSON.stringify(request)} was answered twice`);
        asking.isAnswered = true;
        this.#askings.delete(asking);
        const unasked = this.#checker.answered(asking, answer, partition);
        if (unasked !== undefined) this.#deniedUnasked(asking, unasked, answer as AllowAnswer, partition);
        done(answer, partition);
      });
    });
    return asking;
  }

  /** A user requests at `node` the refund of this request. */
  refund(node: SimNode, request: Question, done: RefundQuestionDone): void {
    this.#checker.refunds.ask(node, request, this.#world.settings.timing.requestDeadlineMillis, done);
  }

  /** A user requests this refund, or has done so. */
  isRefunded(request: Question): boolean {
    return this.#checker.refunds.isAsked(request);
  }

  /** An operator changes a customer at `node`. */
  say(
    node: SimNode,
    { id, action }: { readonly id: string; readonly action: CustomerAction },
    done: (answer: CustomerAnswer, partition: number) => void,
  ): void {
    const { life } = node;
    node.inProcess((core) => {
      this.#isOperator = true;
      core.requests.customers.ask(id, action, (answer, partition) => {
        if (isCurrent(node, life)) done(answer, partition);
      });
      this.#isOperator = false;
    });
  }

  /** A process has begun. */
  observe(node: SimNode, core: NodeCore): void {
    const { life } = node;
    const ask = core.ask.bind(core);
    core.ask = (request, done, deadlineMillis) => {
      if (deadlineMillis === undefined) {
        ask(request, done, deadlineMillis);
        return;
      }
      if (request.ask === 'customer') {
        this.#world.asks.concerns(node.id, request.userId);
        const isRefund = this.#checker.refunds.of(node, deadlineMillis) !== undefined;
        const heard =
          this.#isOperator || isRefund
            ? this.#customers.learning(node, request)
            : this.#customers.reading(this.#reader(node, request, deadlineMillis), request);
        const reported = (answer: CustomerAnswer, partition: number): void => {
          heard(answer, partition);
          done(answer as never, partition);
        };
        ask(request, reported as typeof done, deadlineMillis);
        return;
      }
      const question =
        request.ask === 'refund'
          ? (this.#takeBack(node, request, deadlineMillis) ?? this.#giveBack(node, request))
          : request.ask === 'peek'
            ? this.#peekedAt(node, request)
            : request.ifRemembered === true
              ? this.#recall(node, request, deadlineMillis)
              : this.#question(node, request, deadlineMillis);
      this.#open.add(question);
      this.#world.asks.asked(node.id, request);
      const reported = (answer: AllowAnswer | RefundAnswer | PeekAnswer, partition: number): void => {
        if (isCurrent(node, life)) this.#answered(question, answer, partition);
        done(answer as never, partition);
      };
      ask(request, reported as typeof done, deadlineMillis);
    };
  }

  #ofProcess({ id, life }: SimNode): Map<number, Asking> {
    const process = `${id}/${life}`;
    const askings = this.#byDeadline.get(process) ?? new Map<number, Asking>();
    this.#byDeadline.set(process, askings);
    return askings;
  }

  /** The request for which a node asks this. */
  #askingOf(node: SimNode, request: AllowRequest | CustomerRequest, deadlineMillis: number): Asking {
    const asking = this.#ofProcess(node).get(deadlineMillis);
    check(
      asking !== undefined && !asking.isAnswered,
      () => `node ${node.id} asks for ${JSON.stringify(request)}, but no client asked for it`,
    );
    return asking;
  }

  /** The request for which a node reads the record of a customer. */
  #reader(node: SimNode, request: CustomerRequest, deadlineMillis: number): Asking {
    const asking = this.#askingOf(node, request, deadlineMillis);
    check(
      asking.customer?.key === request.userId && request.action.type === 'read',
      () => `node ${node.id} asks for ${JSON.stringify(request)}, on behalf of ${wordsOfAsking(asking)}`,
    );
    return asking;
  }

  #answered(
    question: PartitionQuestion,
    answer: AllowAnswer | RefundAnswer | PeekAnswer,
    partition: number,
  ): void {
    const { node, request } = question;
    check(this.#open.delete(question), () => `${JSON.stringify(request)} was answered twice`);
    this.#world.asks.answered(node.id, request);
    this.#world.story.report(
      () => `node ${node.id} is answered ${JSON.stringify(answer)} to ${JSON.stringify(request)}`,
    );
    question.answered(answer, partition);
  }

  /** The refund is for a user; undefined: the node refunds its own reservation. */
  #takeBack(node: SimNode, request: RefundRequest, deadlineMillis: number): PartitionQuestion | undefined {
    const refunding = this.#checker.refunds.of(node, deadlineMillis);
    if (refunding === undefined || !this.#checker.refunded(refunding, request)) return undefined;
    return questionOfRefund(this.#world, node, request);
  }

  #giveBack(node: SimNode, request: RefundRequest): PartitionQuestion {
    const reservation = this.#checker.released(node, request);
    return {
      node,
      request,
      asking: undefined,
      askedAt: this.#world.now(),
      answered: (answer, partition) => {
        reservation.release = { answer: answer as RefundAnswer, at: this.#world.now() };
        this.#world.story.seen(`reservation ${answer.kind === 'refund' ? 'given back' : 'left'}`);
        if (answer.kind !== 'refund') return;
        const group = groupOfPartition(partition);
        const { limits } = this.#world;
        limits.refunded(group, request, answer.refund, this.#world.committedIndex(group));
      },
    };
  }

  /** A peek at a limit of a request that others denied; or at the version of the rules in force. */
  #peekedAt(node: SimNode, request: PeekRequest): PartitionQuestion {
    if (isOfRules(request)) return questionOfRules(this.#world, node, request);
    const ofNode = [...this.#askings].filter((one) => one.node === node && one.life === node.life);
    const askings = ofNode.filter((asking) => this.#checker.limits.hasLimit(asking, request));
    check(
      askings.length > 0,
      () => `node ${node.id} peeks at ${JSON.stringify(request)}, but no request needs that`,
    );
    for (const asking of askings) asking.peeks += 1;
    return {
      node,
      request,
      asking: undefined,
      askedAt: this.#world.now(),
      answered: (answer, partition) => {
        this.#world.story.seen(`peek after a denial ${answer.kind}`);
        if (answer.kind !== 'keyStatus') return;
        const group = groupOfPartition(partition);
        this.#world.limits.peeked(group, request, answer.keyStatus, this.#world.committedIndex(group));
        for (const { peeked } of askings) peeked.push({ request, keyStatus: answer.keyStatus });
      },
    };
  }

  /** A query for an earlier grant. It charges nothing. */
  #recall(node: SimNode, request: AllowRequest, deadlineMillis: number): PartitionQuestion {
    const asking = this.#askingOf(node, request, deadlineMillis);
    check(
      asking.request.requestId === request.requestId,
      () => `node ${node.id} recalls ${JSON.stringify(request)} on behalf of ${wordsOfAsking(asking)}`,
    );
    // If there is no earlier grant the node continues with this record, even if it learns of another meanwhile.
    asking.confirmed ??= asking.customer?.known();
    asking.recalledBy = asking.confirmed;
    const askedAt = this.#world.now();
    const id = JSON.stringify([request.userId, request.requestId]);
    return {
      node,
      request,
      asking,
      askedAt,
      answered: (reported, partition) => {
        const answer = reported as AllowAnswer;
        asking.recalled = answer;
        this.#world.story.seen(`recall ${wordOf(answer)}`);
        const invokedMillis = this.#firstInvoked.get(id) ?? askedAt;
        this.#check(request, answer, { partition, invokedMillis, attemptMillis: askedAt });
      },
    };
  }

  #question(node: SimNode, request: AllowRequest, deadlineMillis: number): PartitionQuestion {
    const asking = this.#askingOf(node, request, deadlineMillis);
    const isShadowed = this.#checker.shadows.isShadowed(request);
    if (isShadowed) this.#checker.shadowAsked(asking, request);
    const place = isShadowed ? undefined : this.#checker.asked(asking, request);
    const { now, rejections, story } = this.#world;
    const askedAt = now();
    const id = JSON.stringify([request.userId, request.requestId]);
    if (request.requestId !== undefined && !this.#firstInvoked.has(id)) this.#firstInvoked.set(id, askedAt);
    const charge = rejections.begun(askedBy(request), askedAt);
    return {
      node,
      request,
      asking,
      askedAt,
      answered: (reported, partition) => {
        const answer = reported as AllowAnswer;
        if (place !== undefined) place.answer = answer;
        this.#customers.heard(asking, answer, partition);
        if (isRejection(answer)) rejections.rejected(charge);
        if (isNowhere(answer)) rejections.nowhere(charge);
        story.seen(`${isShadowed ? 'shadow' : 'part'} ${wordOf(answer)}`);
        const invokedMillis = this.#firstInvoked.get(id) ?? askedAt;
        this.#check(request, answer, { partition, invokedMillis, attemptMillis: askedAt });
      },
    };
  }

  /** A node denies without a question: it must be the denial that the leader of that partition would have given. */
  #deniedUnasked(asking: Asking, request: AllowRequest, answer: AllowAnswer, partition: number): void {
    const { node, life } = asking;
    check(
      answer.kind === 'decision' && answer.decision.decided.position === undefined,
      () => `node ${node.id} decides ${JSON.stringify(request)} without asking any node`,
    );
    // The recalls and peeks took a while.
    const leads = (): boolean => node.core?.partitions.get(partition)?.leader === node.id;
    check(
      isCurrent(node, life) && (asking.recalled !== undefined || asking.peeks > 0 || leads()),
      () => `node ${node.id} denies ${JSON.stringify(request)}, asked no node and does not lead`,
    );
    this.#world.story.seen('denied before anything was reserved');
    const when = { partition, invokedMillis: asking.askedAt, attemptMillis: asking.askedAt };
    this.#check(request, answerOfPart(request, answer), when);
  }

  /** Checks against the log of its partition. */
  #check(
    request: AllowRequest,
    answer: AllowAnswer,
    { partition, ...invoked }: { partition: number; invokedMillis: number; attemptMillis: number },
  ): void {
    const { limits } = this.#world;
    const group = groupOfPartition(partition);
    const { requestId = '' } = request;
    if (answer.kind === 'decision') {
      const when = { committedIndex: this.#world.committedIndex(group), ...invoked };
      limits.answered(group, request, answer.decision, when);
    }
    // Only its own node uses the id of a reservation.
    if (answer.kind === 'unavailable' && !answer.proposed && requestId.startsWith('~')) {
      limits.refused(requestId);
      this.#world.nowhere(group, requestId);
    }
  }

  /** A process ended: its clients get no answer. */
  lost(node: SimNode): void {
    for (const question of this.#open) {
      if (question.node !== node) continue;
      this.#open.delete(question);
      this.#world.asks.answered(node.id, question.request);
    }
    for (const asking of this.#askings) {
      if (asking.node !== node) continue;
      asking.isLost = true;
      this.#askings.delete(asking);
    }
  }

  /** At the end of a run no client waits any more. */
  checkAnswered(): void {
    const { now, settings } = this.#world;
    const oldMillis = now() - 4 * settings.timing.requestDeadlineMillis;
    for (const { node, askedAt, request } of [...this.#askings, ...this.#open]) {
      const isLate = askedAt < oldMillis && node.isUp && !node.isPaused;
      check(!isLate, () => `node ${node.id} never answered ${JSON.stringify(request)}`);
    }
  }
}
