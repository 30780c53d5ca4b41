/**
 * Shadow rules: which questions ask them, and which reservations a node refunds. Judges which refunds a node may ask
 * for, and how often.
 */
import type { AllowRequest } from '../../src/api/request.ts';
import { type Asking, isGivenBack, type Reservation } from './described-rounds.ts';
import { type RulesDocument, windowIdOf } from './documents.ts';
import type { SimNode } from './sim-node.ts';
import { check } from './story.ts';

export interface Shadow {
  readonly asking: Asking;
  readonly own: Reservation;
}

export class DescribedShadows {
  readonly #documents: readonly RulesDocument[];
  readonly #shadows = new Map<string, Shadow>();

  constructor(documents: readonly RulesDocument[]) {
    this.#documents = documents;
  }

  isShadowed({ ruleId }: AllowRequest): boolean {
    return this.#documents.some(({ rules }) =>
      rules.some(({ id, isShadow, windows }) => {
        return isShadow && windows.some((window) => windowIdOf(id, window) === ruleId);
      }),
    );
  }

  asked(asking: Asking, request: AllowRequest, askedAt: number): void {
    const id = request.requestId ?? '';
    check(id !== '' && !this.#shadows.has(id), () => `two questions to shadow rules have the id '${id}'`);
    const own: Reservation = { request, askedAt, answer: undefined, isReleased: false, release: undefined };
    this.#shadows.set(id, { asking, own });
  }

  ownOf(requestId: string): Reservation | undefined {
    return this.#shadows.get(requestId)?.own;
  }

  all(): readonly Shadow[] {
    return [...this.#shadows.values()];
  }

  /** A node asks for this refund. Returns what it refunds; undefined if it belongs to no shadow rule. */
  released({ id: node, life }: Pick<SimNode, 'id' | 'life'>, requestId: string): Reservation | undefined {
    const known = this.#shadows.get(requestId);
    if (known === undefined) return undefined;
    const { asking, own } = known;
    const isOwn = asking.node.id === node && asking.life === life;
    const mayAsk = !own.isReleased || (own.release !== undefined && !isGivenBack(own));
    check(
      isOwn && mayAsk,
      () => `node ${node} gives ${requestId} of a shadow rule back twice, or for another node`,
    );
    own.isReleased = true;
    own.release = undefined;
    return own;
  }
}
