/** The observed questions of nodes for described requests: data, and their text form. */
import type { AllowAnswer } from '../../src/api/answer.ts';
import type { PeekAnswer, PeekRequest } from '../../src/api/peek.ts';
import type { RefundAnswer, RefundRequest } from '../../src/api/refund.ts';
import type { AllowRequest } from '../../src/api/request.ts';
import type { ClientWorld } from './client-world.ts';
import { groupOfPartition } from '../../src/partition/placement.ts';
import { type Asking, limitsAsked } from './described-rounds.ts';
import type { SimNode } from './sim-node.ts';

/** One question of a node. */
export interface PartitionQuestion {
  readonly node: SimNode;
  readonly request: AllowRequest | RefundRequest | PeekRequest;
  /** The request it is for. Undefined: a refund that no client waits for, or a query for the rules in force. */
  readonly asking: Asking | undefined;
  readonly askedAt: number;
  answered(answer: AllowAnswer | RefundAnswer | PeekAnswer, partition: number): void;
}

/** Answers of a process after its end reach no client. */
export function isCurrent(node: SimNode, life: number): boolean {
  return node.life === life && node.isUp;
}

export function wordOf(answer: AllowAnswer): string {
  if (answer.kind === 'unavailable') return answer.reason;
  if (answer.kind !== 'decision') return answer.kind;
  return answer.isRepeat === true ? 'repeated' : answer.decision.allowed ? 'granted' : 'denied';
}

/** Whether this asks which rules are in force, because those of the node find no limit. */
export function isOfRules({ ruleId }: PeekRequest): boolean {
  return ruleId === '0/1ms';
}

export function questionOfRules(world: ClientWorld, node: SimNode, request: PeekRequest): PartitionQuestion {
  return {
    node,
    request,
    asking: undefined,
    askedAt: world.now(),
    answered: ({ kind }) => world.story.seen(`rules in force ${kind}`),
  };
}

/** A user refunds the part of a grant in one partition. */
export function questionOfRefund(
  world: ClientWorld,
  node: SimNode,
  request: RefundRequest,
): PartitionQuestion {
  return {
    node,
    request,
    asking: undefined,
    askedAt: world.now(),
    answered: (answer, partition) => {
      if (answer.kind !== 'refund') return world.story.seen('described refund unavailable');
      world.story.seen(`described refund ${answer.refund.refunded ? 'done' : 'of nothing'}`);
      const group = groupOfPartition(partition);
      world.limits.refunded(group, request, answer.refund, world.committedIndex(group));
    },
  };
}

/** The answer of the partition for these limits alone: the node has peeked at the others. */
export function answerOfPart(request: AllowRequest, answer: AllowAnswer): AllowAnswer {
  if (answer.kind !== 'decision' || answer.decision.limits === undefined) return answer;
  const { limits, ...decision } = answer.decision;
  const asked = limitsAsked(request);
  const own = limits.filter((limit) => asked.some(({ ruleId }) => ruleId === limit.ruleId));
  return { ...answer, decision: asked.length === 1 ? decision : { ...decision, limits: own } };
}
